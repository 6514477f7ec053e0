import { codeGrids, wrongMails } from '#test/harness/code-grids.js'

test.each(codeGrids())('at least $minShare of the generated mails give the right code: $name', (grid) => {
  const wrong = wrongMails(grid)
  const share = 1 - wrong.length / grid.mails.length
  if (share < grid.minShare)
    throw new Error(`${share.toFixed(3)} of ${grid.mails.length}\n${JSON.stringify(wrong, null, 1)}`)
})
