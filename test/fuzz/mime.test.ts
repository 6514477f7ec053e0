import fc from 'fast-check'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkMail } from './mime-laws.js'
import { anySource } from './mime-sources.js'
import { fuzzMime } from './mime.js'

const FOUND = join(process.cwd(), 'test/fuzz/mime-found')
const SOURCES = 800

describe('parsing of arbitrary mail', () => {
  it('holds for the inputs that the fuzzer has found', async () => {
    const names = (await readdir(FOUND)).filter((name) => name.endsWith('.eml'))
    expect(names).not.toEqual([])
    for (const name of names) {
      const raw = await readFile(join(FOUND, name))
      try {
        checkMail(raw)
      } catch (cause) {
        throw new Error(name, { cause })
      }
    }
  })

  it('holds for generated sources', () => {
    fc.assert(
      fc.property(anySource, (raw) => checkMail(raw)),
      { numRuns: SOURCES },
    )
  })

  it('can be fuzzed from a seed for a number of inputs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-fuzz-'))
    const said: string[] = []
    try {
      const run = {
        endsAtMs: Date.now() + 60_000,
        mostInputs: 1,
        seed: 1,
        folder,
        say: (line: string) => said.push(line),
      }
      expect(await fuzzMime(run)).toBe(0)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
    expect(said.at(-1)).toMatch(/^[1-9]\d* sources from seed 1 on, 0 failures of 0 kinds$/)
  })
})
