import { Redis } from 'ioredis'
import { startRedis } from '#test/harness/redis.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'

const INBOXES = 64

/** Events per second that a projector replays from the log into emptied views, on a separate Redis. */
export const rebuilding: Section = async ({ plan, profileDir }) => {
  const server = await startRedis()
  const redis = new Redis(server.url)
  const subject = await Subject.start(profileDir, { REDIS_URL: server.url })
  try {
    const inboxes = await subject.createInboxes(INBOXES)
    const mails = plan.rebuiltMails
    await subject.sendMails(inboxes, mails)
    await subject.untilVisible(mails)
    await redis.flushall()
    const started = performance.now()
    await subject.untilVisible(mails)
    const seconds = (performance.now() - started) / 1000
    return [
      { name: `rebuild of ${mails} mails`, unit: 's', rounds: [seconds] },
      { name: 'events replayed', unit: 'events/s', rounds: [(mails + INBOXES) / seconds] },
    ]
  } finally {
    redis.disconnect()
    await subject.dispose()
    await server.dispose()
  }
}
