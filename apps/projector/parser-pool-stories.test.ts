import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { mintId } from '#libs/domain/ids/mint.js'
import { anyPoolStory, toldTask, type PoolStory } from './parse-task.test-support.js'
import { ParserPool } from './parser-pool.js'

const STORIES = 3

it('answers for every mail, or for why not, whatever comes and whichever threads are lost', async () => {
  const law = fc.asyncProperty(anyPoolStory, async (story) => {
    const pool = new ParserPool({ ...story.options, onThreadLost: () => undefined })
    try {
      await tell(pool, story)
    } finally {
      await pool.close()
    }
  })
  await fc.assert(law, { numRuns: STORIES, endOnFailure: true })
})

/** Resolves once every call has its answer: a mail that is lost keeps it waiting. */
async function tell(pool: ParserPool, { calls, closesAfterMs }: PoolStory): Promise<void> {
  const accounts = [0, 1].map(() => ({
    accountId: mintId('acc'),
    inboxIds: [mintId('inb'), mintId('inb')] as const,
  }))
  const closing = closesAfterMs === null ? null : pause(closesAfterMs).then(() => pool.close())
  const answers: Promise<void>[] = []
  for (const [call, { mails, afterMs, leavesAfterMs }] of calls.entries()) {
    await pause(afterMs)
    const told = await Promise.all(
      mails.map(async ({ kind, account, inbox }, index) => {
        const { accountId = mintId('acc'), inboxIds } = accounts[account] ?? {}
        const inboxId = inboxIds?.[inbox] ?? mintId('inb')
        const subject = `${call}.${index}`
        const { open, ...task } = await toldTask(kind, subject, { accountId, inboxId })
        return { kind, subject, task, open }
      }),
    )
    const leaving = new AbortController()
    if (leavesAfterMs !== null) setTimeout(() => leaving.abort(new LeftError()), leavesAfterMs)
    const bodies = pool.parse(
      told.map(({ task }) => task),
      leaving.signal,
    )
    const answer = async () => {
      const opened = await bodies
      expect(opened.size).toBe(told.length)
      for (const { kind, subject, task, open } of told) {
        const mail = open(opened.get(task.messageId))
        if (kind === 'damaged') expect(mail.warnings).toMatchObject([{ code: 'seal-broken' }])
        else if (mail.warnings.length === 0) expect(mail).toMatchObject({ subject, size: task.size })
        else expect([subject, null]).toContain(mail.subject)
      }
    }
    const mayBeLeft = leavesAfterMs !== null || closing !== null
    answers.push(mayBeLeft ? answer().catch(ifLeft) : answer())
  }
  await Promise.all([...answers, closing])
}

class LeftError extends Error {
  override readonly name = 'LeftError'
}

function ifLeft(reason: unknown): void {
  const isLeft = reason instanceof Error && ['LeftError', 'PoolClosedError'].includes(reason.name)
  if (!isLeft) throw reason
}
