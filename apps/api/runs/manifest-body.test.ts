import { Readable } from 'node:stream'
import { Manifest, MAX_LINES } from './manifest.js'
import { readManifest } from './manifest-body.js'

const LINE = '{"recipient":"a@mayfly.test","id":"<1>"}\n'

async function read(pieces: Iterable<string | Buffer>): Promise<Manifest> {
  const manifest = new Manifest((recipient) => recipient)
  await readManifest(Readable.from(Array.from(pieces, (piece) => Buffer.from(piece))), manifest)
  return manifest
}

describe('the body of a verification', () => {
  it('has the same lines however it is divided', async () => {
    const ids = ['<grün>', '<2>', '<3>']
    const text = ids.map((id) => `${JSON.stringify({ recipient: 'a@x', id, other: { a: [1] } })}\n`).join('')
    const bytes = Buffer.from(text.trimEnd())
    for (const length of [1, 2, 7, 40, bytes.length]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) =>
        bytes.subarray(at * length, (at + 1) * length),
      )
      const manifest = await read(pieces)
      expect(ids.map((_, line) => manifest.read(line).id)).toEqual(ids)
    }
  })

  it('may have a byte order mark, other line ends, empty lines and nulls', async () => {
    const line = '{"recipient":"a@x","id":" <1>\\r\\n <2> ","sent_at":null,"sha256":null}'
    const manifest = await read([`\uFEFF${line}\r\n\r\n  \n${line}`])
    expect(manifest.size).toBe(2)
    expect(manifest.read(1)).toEqual({ recipient: 'a@x', id: '<1> <2>', sentAtMs: null, digest: null })
  })

  it('has times and digests', async () => {
    const more = { sent_at: '2026-11-25T21:00:00.123+01:00', sha256: 'AB'.repeat(32) }
    const manifest = await read([JSON.stringify({ recipient: 'a@x', id: '1', ...more })])
    expect(manifest.sentAtMs(0)).toBe(Date.parse('2026-11-25T20:00:00.123Z'))
    expect(Buffer.from(manifest.digestOf(0) ?? []).toString('hex')).toBe('ab'.repeat(32))
  })

  it('must be valid UTF-8', async () => {
    const bad = Buffer.concat([Buffer.from(LINE), Buffer.from([0x22, 0xff, 0x22])])
    await expect(read([bad])).rejects.toMatchObject({
      code: 'malformed-json',
      message: expect.stringMatching(/^Line 2: /) as string,
    })
  })

  it('may have a million lines, and not one more', async () => {
    const manifest = new Manifest((recipient) => recipient)
    const piece = Buffer.from(LINE.repeat(1_000))
    const body = Readable.from(
      (function* () {
        for (let lines = 0; lines < MAX_LINES; lines += 1_000) yield piece
        yield Buffer.from(LINE)
      })(),
    )
    const refusal = { code: 'body-too-large', message: expect.stringContaining('1000000 lines') as string }
    await expect(readManifest(body, manifest)).rejects.toMatchObject(refusal)
    expect(manifest.size).toBe(MAX_LINES)
  })
})
