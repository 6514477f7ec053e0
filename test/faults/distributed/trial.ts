import { call, createInbox, type InboxJson, type Target } from '#test/harness/client.js'
import { until } from '#test/harness/until.js'
import { Ledger } from '../ledger.js'
import { startLoad, type Load } from '../load.js'
import type { Deployment } from './deployment.js'
import { Told } from './told.js'

const ENOUGH = 40
export const RECOVERS_WITHIN_MS = 90_000

/** Load on a deployment, with a ledger of all that it promised. */
export class Trial {
  readonly ledger = new Ledger()
  private loads: Load[] = []
  private told: Told | null = null

  private constructor(readonly deployment: Deployment) {}

  static async begin(deployment: Deployment): Promise<Trial> {
    const trial = new Trial(deployment)
    const favourite = await createInbox(deployment.target)
    trial.ledger.inboxes.set(favourite.id, favourite)
    for (let count = 0; count < 3; count += 1) {
      const inbox = await createInbox(deployment.target)
      trial.ledger.inboxes.set(inbox.id, inbox)
    }
    await trial.listenTo(favourite)
    const load = { senders: 3, creators: 1, readers: 1, isPersistent: true, favourite }
    trial.loads = deployment.targets.map((target) => startLoad(target, trial.ledger, load))
    // A trial that fails must not go on.
    deployment.users.push(...trial.loads)
    await trial.goesOn()
    return trial
  }

  /** Where the deployment has webhooks, an endpoint is told of the inbox's mail. */
  private async listenTo({ id }: InboxJson): Promise<void> {
    const [metrics] = this.deployment.metricsOf('webhooks')
    if (metrics === undefined) return
    this.told = await Told.begin(this.deployment.target, id, metrics)
    this.deployment.users.push(this.told)
  }

  get promises(): number {
    return this.loads.reduce((sum, load) => sum + load.promises(), 0)
  }

  /** Resolves once a good many more promises have been made. */
  async goesOn(): Promise<void> {
    const enough = this.promises + ENOUGH
    await until(`${ENOUGH} more promises`, () => this.promises >= enough, RECOVERS_WITHIN_MS)
  }

  /** Ends the load; everything promised is there, once and unchanged, was never denied meanwhile, and was told. */
  async end(): Promise<void> {
    await Promise.all(this.loads.map((load) => load.stop()))
    expect(this.loads.flatMap((load) => load.denials()).map(String)).toEqual([])
    for (const target of this.deployment.targets) {
      await untilAllIsShown(target)
      await this.ledger.mustHold(target)
    }
    await this.ledger.sourcesMustHold(this.deployment.target, [...this.ledger.accepted.keys()].slice(-50))
    await this.told?.mustHold(this.ledger)
  }
}

/** Until nothing that was accepted is still to be read. */
export async function untilAllIsShown(target: Target): Promise<void> {
  await until(
    'the backlog to be worked off',
    async () => {
      const { status, body } = await call<{ backlog?: number }>(target, 'GET', '/readyz')
      return status === 200 && body.backlog === 0
    },
    RECOVERS_WITHIN_MS,
  )
}
