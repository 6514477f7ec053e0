import { mintId } from '#libs/domain/ids/mint.js'
import { ContentPool } from './content-pool.js'

const MIB = 1024 * 1024

/** A mail with an attachment and a text of short lines, which takes the most memory to parse. */
function source(): Buffer {
  const head = [
    'Content-Type: multipart/mixed; boundary=part',
    '',
    '--part',
    'Content-Disposition: attachment; filename=a.txt',
    '',
    'Hello.',
    '--part',
    'Content-Type: text/plain; format=flowed',
    '',
    '',
  ]
  return Buffer.concat([Buffer.from(head.join('\r\n')), Buffer.alloc(24 * MIB, ' \r\n')])
}

it('needs no memory for the other parts of a mail', async () => {
  const pool = new ContentPool({
    ...{ threads: 2, heapMib: 512 },
    onExhausted: () => undefined,
    onThreadLost: () => undefined,
  })
  try {
    const readTask = () => ({ raw: source(), index: 0 })
    const done = await pool.run('openAttachment', mintId('acc'), readTask, new AbortController().signal)
    expect(Buffer.from(done?.result?.content ?? []).toString()).toBe('Hello.')
  } finally {
    await pool.onApplicationShutdown()
  }
})
