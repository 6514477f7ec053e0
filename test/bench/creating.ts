import { median, quantile, type Figure } from './figure.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'

const WARM_UP = 50

/** From a request that creates an inbox to its 201, one at a time and ten at once. */
export const creating: Section = async ({ plan, engine, profileDir }) => {
  const subject = await Subject.start(profileDir)
  try {
    await subject.createInboxes(WARM_UP)
    const figures: Figure[] = []
    for (const atOnce of [1, 10]) {
      const times: number[] = []
      let left = plan.createdInboxes
      const work = async () => {
        while (left-- > 0) {
          const started = performance.now()
          await subject.createInbox()
          times.push(performance.now() - started)
        }
      }
      await Promise.all(Array.from({ length: atOnce }, work))
      const name = atOnce === 1 ? 'create inbox' : `create inbox, ${atOnce} at once`
      figures.push(
        { name: `${name}, p50`, unit: 'ms', rounds: [median(times)] },
        {
          name: `${name}, p99`,
          unit: 'ms',
          rounds: [quantile(times, 0.99)],
          target: { atMost: engine === 'embedded' ? 20 : 60 },
        },
      )
    }
    return figures
  } finally {
    await subject.dispose()
  }
}
