import { PassThrough } from 'node:stream'
import { until } from '#test/harness/until.js'
import { showProgress } from './progress.js'

const counts = () => ({ done: 0.42, sent: 1_234, errors: 2, lagMs: 15.4 })

describe('the progress of a run', () => {
  let shown = ''
  const outputThat = (isTTY: boolean) => {
    shown = ''
    const output: PassThrough & { isTTY?: boolean } = Object.assign(new PassThrough(), { isTTY })
    output.on('data', (chunk: Buffer) => (shown += chunk.toString()))
    return output
  }

  it('is a bar on a terminal, which is removed at the end', async () => {
    const end = showProgress(outputThat(true), counts)
    await until('a bar', () => shown !== '')
    end()
    expect(shown).toMatch(
      /^\r\u001b\[K\[########\.{12}\] {2}42 % {2}\d+\/s, 1234 sent, 2 errors, lag 15 ms\r\u001b\[K$/,
    )
  })

  it('is a line elsewhere, but none in the first seconds', async () => {
    const end = showProgress(outputThat(false), counts)
    await until('a line', () => shown !== '')
    end()
    expect(shown).toMatch(/^42 %, \d+\/s, 1234 sent, 2 errors, lag 15 ms\n$/)
  })
})
