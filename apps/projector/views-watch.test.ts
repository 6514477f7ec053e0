import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import type { Progress } from '#libs/ports/read-model/view-store.js'
import { until } from '#test/harness/until.js'
import { watchViews } from './views-watch.js'

const isWatched = ({ topic, partition }: Partition) => topic === 'account-events' && partition === 0

/** Watches views of one partition at `position`, of which the process has handled records up to `handledTo`. */
function watching(views: { position: number; handledTo: number }) {
  const restarted: Partition[] = []
  let checks = 0
  const watch = watchViews({
    log: layoutOf({ partitionCount: () => 1 }),
    queries: {
      progress(partition): Promise<Progress> {
        if (isWatched(partition)) checks += 1
        const position = isWatched(partition) ? views.position : 0
        return Promise.resolve({ ...partition, logId: 'the-log', position, target: 0, begunAtMs: 0 })
      },
    },
    consumers: {
      handledTo: (partition) => (isWatched(partition) ? views.handledTo : null),
      restart: (partition) => restarted.push(partition),
    },
    onLost: () => undefined,
    onError: (error) => {
      throw error
    },
  })
  watch.start()
  return { watch, restarted, checks: () => checks }
}

describe('the watch of the views', () => {
  it.each([
    { when: 'since the last check', from: 9, position: 8, handledTo: 8 },
    { when: 'to the position of the last check', from: 8, position: 8, handledTo: 9 },
  ])('restarts a partition whose views were restored $when', async ({ from, position, handledTo }) => {
    const views = { position: from, handledTo: from }
    const { watch, restarted, checks } = watching(views)
    await until('a check', () => checks() > 0)
    expect(restarted).toEqual([])
    Object.assign(views, { position, handledTo })
    await until('a restart', () => restarted.length > 0)
    await watch.stop()
    expect(restarted[0]).toEqual({ topic: 'account-events', partition: 0 })
  })

  it('does not restart a partition whose views have not moved', async () => {
    const { watch, restarted, checks } = watching({ position: 8, handledTo: 8 })
    await until('two checks', () => checks() > 1)
    await watch.stop()
    expect(restarted).toEqual([])
  })
})
