import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import type { Progress } from '#libs/ports/read-model/queries.js'
import { until } from '#test/harness/until.js'
import { ViewsWatch } from './views-watch.js'

const isWatched = ({ topic, partition }: Partition) => topic === 'account-events' && partition === 0

/** Of views of one partition that stand at `position`, while the process has taken them to `handledTo`. */
function watching(views: { position: number; handledTo: number }) {
  const located: Partition[] = []
  let looks = 0
  const watch = new ViewsWatch({
    log: layoutOf({ partitionCount: () => 1 }),
    queries: {
      progress(place): Promise<Progress> {
        if (isWatched(place)) looks += 1
        const position = isWatched(place) ? views.position : 0
        return Promise.resolve({ ...place, logId: 'the-log', position, target: 0, begunAtMs: 0 })
      },
    },
    consumers: {
      handledTo: (place) => (isWatched(place) ? views.handledTo : null),
      restart: (place) => located.push(place),
    },
    onLost: () => undefined,
    onError: (error) => {
      throw error
    },
  })
  watch.start()
  return { watch, located, looks: () => looks }
}

describe('views that were put back from an older copy', () => {
  it.each([
    { told: 'since they were last seen', from: 9, position: 8, handledTo: 8 },
    { told: 'before they were seen any further on', from: 8, position: 8, handledTo: 9 },
  ])('are begun again, where that was $told', async ({ from, position, handledTo }) => {
    const views = { position: from, handledTo: from }
    const { watch, located, looks } = watching(views)
    await until('a look', () => looks() > 0)
    expect(located).toEqual([])
    Object.assign(views, { position, handledTo })
    await until('them to be begun again', () => located.length > 0)
    await watch.stop()
    expect(located[0]).toEqual({ topic: 'account-events', partition: 0 })
  })

  it('are left alone where they stand as they did', async () => {
    const { watch, located, looks } = watching({ position: 8, handledTo: 8 })
    await until('two looks', () => looks() > 1)
    await watch.stop()
    expect(located).toEqual([])
  })
})
