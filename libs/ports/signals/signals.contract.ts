import { Doorbell, type Signals } from './signals.js'

export interface SignalsHarness {
  /** The signals as two processes have them; the same object if there is only one process. */
  one: Signals
  other: Signals
  close(): Promise<void>
}

const WITHIN_MS = 10_000

/** Counts signals, and lets a test wait for them. */
class Listener {
  heard = 0
  private readonly bell = new Doorbell()

  readonly listen = (): void => {
    this.heard += 1
    this.bell.ring()
  }

  async hears(times: number): Promise<void> {
    const deadline = Date.now() + WITHIN_MS
    while (this.heard < times) {
      if (Date.now() >= deadline) throw new Error(`heard ${this.heard} signals, not ${times}`)
      await this.bell.wait(deadline - Date.now())
    }
  }
}

export function describeSignals(name: string, make: () => Promise<SignalsHarness>): void {
  describe(`${name} as signals`, () => {
    let harness: SignalsHarness

    beforeEach(async () => {
      harness = await make()
    })
    afterEach(() => harness.close())

    /** Resolves once a signal that is published now has reached its listener. */
    async function laterSignal(): Promise<void> {
      const marker = new Listener()
      await harness.one.subscribe('marker', marker.listen)
      harness.one.publish('marker')
      await marker.hears(1)
    }

    it('reach all listeners of their channel in all processes, soon but not synchronously', async () => {
      const { one, other } = harness
      const listeners = [new Listener(), new Listener(), new Listener()]
      await Promise.all(
        listeners.map((listener, index) => (index === 0 ? other : one).subscribe('moved', listener.listen)),
      )
      one.publish('moved')
      expect(listeners.map(({ heard }) => heard)).toEqual([0, 0, 0])
      await Promise.all(listeners.map((listener) => listener.hears(1)))
    })

    it('reach no listener of another channel', async () => {
      const [wanted, unwanted] = [new Listener(), new Listener()]
      await harness.one.subscribe('moved:1', wanted.listen)
      await harness.one.subscribe('moved:11', unwanted.listen)
      harness.other.publish('moved:1')
      await wanted.hears(1)
      expect(unwanted.heard).toBe(0)
    })

    it('carry a message, which is empty by default', async () => {
      const messages: string[] = []
      const listener = new Listener()
      await harness.other.subscribe('moved', (message) => {
        messages.push(message)
        listener.listen()
      })
      harness.one.publish('moved', '{"to":"Zoë"}')
      harness.one.publish('moved')
      await listener.hears(2)
      // Signals that are published at once may arrive in another order.
      expect(messages.toSorted()).toEqual(['', '{"to":"Zoë"}'])
    })

    it('may be published before there is a listener', async () => {
      harness.one.publish('unheard')
      const listener = new Listener()
      await harness.one.subscribe('unheard', listener.listen)
      harness.one.publish('unheard')
      await listener.hears(1)
    })

    it('do not reach a listener that has unsubscribed, even if they were published before', async () => {
      const { one } = harness
      const [gone, staying] = [new Listener(), new Listener()]
      const end = await one.subscribe('moved', gone.listen)
      await one.subscribe('moved', staying.listen)
      one.publish('moved')
      end()
      one.publish('moved')
      await staying.hears(2)
      expect(gone.heard).toBe(0)
    })

    it('still reach a listener with two subscriptions after one of them has ended, even twice', async () => {
      const { one } = harness
      const listener = new Listener()
      const end = await one.subscribe('moved', listener.listen)
      await one.subscribe('moved', listener.listen)
      end()
      end()
      one.publish('moved')
      await listener.hears(1)
      // A second signal for the same publication would arrive with the next one.
      await laterSignal()
      expect(listener.heard).toBe(1)
    })

    it('reach a new listener of a channel that had one before', async () => {
      const { one, other } = harness
      const [first, second] = [new Listener(), new Listener()]
      const end = await one.subscribe('moved', first.listen)
      end()
      await one.subscribe('moved', second.listen)
      end()
      other.publish('moved')
      await second.hears(1)
      expect(first.heard).toBe(0)
    })
  })
}
