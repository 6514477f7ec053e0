import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { mintId } from '#libs/domain/ids/mint.js'
import { anyPoolScenario, scenarioTask, type PoolScenario } from './parse-task.test-support.js'
import { ParserPool } from './parser-pool.js'

const SCENARIOS = 3

it('settles every mail, in any order of calls and losses of threads', async () => {
  const law = fc.asyncProperty(anyPoolScenario, async (scenario) => {
    const pool = new ParserPool({ ...scenario.options, onThreadLost: () => undefined })
    try {
      await play(pool, scenario)
    } finally {
      await pool.close()
    }
  })
  await fc.assert(law, { numRuns: SCENARIOS, endOnFailure: true })
})

/** Resolves once every call is settled. It hangs if a mail is lost. */
async function play(pool: ParserPool, { calls, closesAfterMs }: PoolScenario): Promise<void> {
  const accounts = [0, 1].map(() => ({
    accountId: mintId('acc'),
    inboxIds: [mintId('inb'), mintId('inb')] as const,
  }))
  const closing = closesAfterMs === null ? null : pause(closesAfterMs).then(() => pool.close())
  const checks: Promise<void>[] = []
  for (const [call, { mails, afterMs, abortsAfterMs }] of calls.entries()) {
    await pause(afterMs)
    const tasks = await Promise.all(
      mails.map(async ({ kind, account, inbox }, index) => {
        const { accountId = mintId('acc'), inboxIds } = accounts[account] ?? {}
        const inboxId = inboxIds?.[inbox] ?? mintId('inb')
        const subject = `${call}.${index}`
        const { open, ...task } = await scenarioTask(kind, subject, { accountId, inboxId })
        return { kind, subject, task, open }
      }),
    )
    const aborting = new AbortController()
    if (abortsAfterMs !== null) setTimeout(() => aborting.abort(new AbortedError()), abortsAfterMs)
    const bodies = pool.parse(
      tasks.map(({ task }) => task),
      aborting.signal,
    )
    const check = async () => {
      const opened = await bodies
      expect(opened.size).toBe(tasks.length)
      for (const { kind, subject, task, open } of tasks) {
        const mail = open(opened.get(task.messageId))
        if (kind === 'damaged') expect(mail.warnings).toMatchObject([{ code: 'seal-broken' }])
        else if (mail.warnings.length === 0) expect(mail).toMatchObject({ subject, size: task.size })
        else expect([subject, null]).toContain(mail.subject)
      }
    }
    const mayAbort = abortsAfterMs !== null || closing !== null
    checks.push(mayAbort ? check().catch(expectAbort) : check())
  }
  await Promise.all([...checks, closing])
}

class AbortedError extends Error {
  override readonly name = 'AbortedError'
}

function expectAbort(reason: unknown): void {
  const isAbort = reason instanceof Error && ['AbortedError', 'PoolClosedError'].includes(reason.name)
  if (!isAbort) throw reason
}
