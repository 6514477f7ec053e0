import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { makeProgram } from './program.js'

describe('mayfly usage export', () => {
  let folder: string
  let url: string
  /** Sends incomplete answers. */
  const server = createServer((_, response) => {
    response.write('{"half":', () => response.destroy())
  })

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-cli-'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    server.close()
    await rm(folder, { recursive: true })
  })

  const run = (output: PassThrough & { isTTY?: boolean }, ...args: string[]) => {
    const all = ['node', 'mayfly', '--url', url, '--key', 'key', 'usage', 'export', ...args]
    return makeProgram(output).parseAsync(all)
  }

  it('refuses to write Parquet to a terminal', async () => {
    const terminal = Object.assign(new PassThrough(), { isTTY: true })
    await expect(run(terminal, '--format', 'parquet')).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('--output') as string,
    })
    expect(terminal.read()).toBeNull()
  })

  it('removes an incomplete file, and keeps an existing one', async () => {
    const path = join(folder, 'usage.ndjson')
    const failure = { exitCode: 1, message: expect.stringMatching(/can't be read/) as string }
    await expect(run(new PassThrough(), '--output', path)).rejects.toMatchObject(failure)
    expect(await readdir(folder)).toEqual([])
    await writeFile(path, 'existing')
    await expect(run(new PassThrough(), '--output', path)).rejects.toMatchObject(failure)
    expect(await readdir(folder)).toEqual(['usage.ndjson'])
    expect(await readFile(path, 'utf8')).toBe('existing')
  })

  it('fails on standard output if the answer is incomplete', async () => {
    await expect(run(new PassThrough())).rejects.toMatchObject({ exitCode: 1 })
  })

  it('sends no request if the file can not be written', async () => {
    let requests = 0
    server.on('request', () => (requests += 1))
    const path = join(folder, 'nowhere', 'usage.ndjson')
    await expect(run(new PassThrough(), '--output', path)).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringMatching(/usage\.ndjson can't be written: .*ENOENT/) as string,
    })
    expect(requests).toBe(0)
  })
})
