import { type Signals, Doorbell } from './signals.js'

export interface SignalsHarness {
  /** Two holders of the same signals, as two instances of the service are; one and the same where there is one process. */
  one: Signals
  other: Signals
  close(): Promise<void>
}

const WITHIN_MS = 10_000

/** Counts what it hears, and lets a test wait for it. */
class Ear {
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

    it('reach every listener of their channel, here and elsewhere, soon and not at once', async () => {
      const { one, other } = harness
      const ears = [new Ear(), new Ear(), new Ear()]
      await Promise.all(ears.map((ear, index) => (index === 0 ? other : one).subscribe('moved', ear.listen)))
      one.publish('moved')
      expect(ears.map(({ heard }) => heard)).toEqual([0, 0, 0])
      await Promise.all(ears.map((ear) => ear.hears(1)))
    })

    it('reach no listener of another channel', async () => {
      const [wanted, unwanted] = [new Ear(), new Ear()]
      await harness.one.subscribe('moved:1', wanted.listen)
      await harness.one.subscribe('moved:11', unwanted.listen)
      harness.other.publish('moved:1')
      await wanted.hears(1)
      expect(unwanted.heard).toBe(0)
    })

    it('go by where nobody listens', async () => {
      harness.one.publish('nobody')
      const ear = new Ear()
      await harness.one.subscribe('nobody', ear.listen)
      harness.one.publish('nobody')
      await ear.hears(1)
    })

    it('no longer reach who has ended its subscription, also where they were already on their way', async () => {
      const { one } = harness
      const [gone, staying] = [new Ear(), new Ear()]
      const end = await one.subscribe('moved', gone.listen)
      await one.subscribe('moved', staying.listen)
      one.publish('moved')
      end()
      one.publish('moved')
      await staying.hears(2)
      expect(gone.heard).toBe(0)
    })

    it('still reach a listener that listens twice, once one of the two has ended, and ended again', async () => {
      const { one } = harness
      const ear = new Ear()
      const end = await one.subscribe('moved', ear.listen)
      await one.subscribe('moved', ear.listen)
      end()
      end()
      one.publish('moved')
      await ear.hears(1)
    })

    it('reach a channel that was listened to before', async () => {
      const { one, other } = harness
      const [first, second] = [new Ear(), new Ear()]
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
