import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { codeBlocks } from '#test/harness/client-packages.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'

const run = promisify(execFile)
const WITHIN_MS = 60_000
/** Includes downloads from Maven Central, 43 MB at the first time. */
const INSTALL_WITHIN_MS = 300_000

/** Runs the commands of clients/jmeter/README.md. */
describeWith('maven')('the test plan for JMeter', () => {
  let mayfly: SharedMayfly
  let folder: string
  let commands: string

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    folder = await mkdtemp(join(tmpdir(), 'mayfly-jmeter-'))
    await installJMeter()
    await cp('clients/jmeter/mail.jmx', join(folder, 'mail.jmx'))
    commands = (await codeBlocks('clients/jmeter/README.md', 'Run')).join('')
  }, INSTALL_WITHIN_MS)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** A program `jmeter` like that of the distribution, but without a port on which to ask it to stop. */
  async function installJMeter(): Promise<void> {
    await cp('test/clients/jmeter/pom.xml', join(folder, 'pom.xml'))
    const goals = ['dependency:build-classpath', 'dependency:unpack']
    const output = ['-Dmdep.outputFile=class-path', '-DoutputDirectory=.']
    await run('mvn', ['-q', '-B', ...goals, ...output], { cwd: folder, timeout: INSTALL_WITHIN_MS })
    const classPath = await readFile(join(folder, 'class-path'), 'utf8')
    const java = `java -Djmeter.home='${folder}' -cp '${classPath}'`
    const script = `#!/bin/sh\nexec ${java} org.apache.jmeter.NewDriver -Jjmeterengine.nongui.port=0 "$@"\n`
    await writeFile(join(folder, 'jmeter'), script, { mode: 0o755 })
  }

  async function runPlan(apiKey: string): Promise<void> {
    const env = { MAYFLY_URL: mayfly.url, MAYFLY_KEY: apiKey }
    const PATH = [folder, process.env.PATH].join(delimiter)
    await run('sh', ['-c', commands], {
      cwd: folder,
      env: { ...process.env, ...env, PATH },
      timeout: WITHIN_MS,
    })
  }

  /** The number of requests by name, status and success, from the file that JMeter writes. */
  async function results(): Promise<Record<string, number>> {
    const [header = '', ...lines] = (await readFile(join(folder, 'results.jtl'), 'utf8')).trim().split('\n')
    const columns = ['label', 'responseCode', 'success'].map((name) => header.split(',').indexOf(name))
    const counts: Record<string, number> = {}
    for (const line of lines) {
      const values = line.split(',')
      const result = columns.map((column) => values[column]).join(', ')
      counts[result] = (counts[result] ?? 0) + 1
    }
    return counts
  }

  it('reads the code of each user', async () => {
    await runPlan(mayfly.apiKey)
    expect(await results()).toEqual({
      'create inbox, 201, true': 50,
      'put in mail, 201, true': 50,
      'wait for mail, 200, true': 50,
      'delete inbox, 200, true': 50,
    })
  })

  it('fails with a wrong key', async () => {
    await expect(runPlan('a-wrong-key')).rejects.toMatchObject({ code: 1 })
    expect(await results()).toEqual({ 'create inbox, 401, false': 50 })
  })
})
