import { BOMBS } from '#test/hostile/bombs.js'
import { checkMail } from '#test/fuzz/mime-laws.js'

const BYTES = 150_000

describe('a mail that is designed to be expensive', () => {
  it.each(Object.entries(BOMBS))('of %s is parsed in linear time, with consistent values', (_, bomb) => {
    checkMail(bomb(BYTES))
  })
})
