import { BOMBS } from '#test/hostile/bombs.js'
import { checkMail } from '#test/fuzz/mime-laws.js'

const BYTES = 150_000

describe('a mail made to cost much', () => {
  it.each(Object.entries(BOMBS))('of %s is read in linear time, into values that hold', async (_, bomb) => {
    await checkMail(bomb(BYTES))
  })
})
