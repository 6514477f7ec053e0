import { call, createInbox, type InboxJson, type Target } from '#test/harness/client.js'
import { until } from '#test/harness/until.js'
import { AcknowledgedWrites } from '../acknowledged-writes.js'
import { startLoad, type Load } from '../load.js'
import type { Deployment } from './deployment.js'
import { WebhookReceipts } from './webhook-receipts.js'

const PROGRESS = 40
export const RECOVERS_WITHIN_MS = 90_000

/** Creates an inbox, as soon as the views of a deployment that has just started are complete. */
async function createdInbox(target: Target): Promise<InboxJson> {
  await until(
    'complete views',
    async () => (await call(target, 'GET', '/v1/inboxes')).status === 200,
    RECOVERS_WITHIN_MS,
  )
  return createInbox(target)
}

/** Runs load on a deployment, and verifies everything that the deployment has acknowledged. */
export class LoadTest {
  readonly acknowledged = new AcknowledgedWrites()
  private loads: Load[] = []
  private receipts: WebhookReceipts | null = null

  private constructor(readonly deployment: Deployment) {}

  static async start(deployment: Deployment): Promise<LoadTest> {
    const loadTest = new LoadTest(deployment)
    const favourite = await createdInbox(deployment.target)
    loadTest.acknowledged.inboxes.set(favourite.id, favourite)
    for (let count = 0; count < 3; count += 1) {
      const inbox = await createdInbox(deployment.target)
      loadTest.acknowledged.inboxes.set(inbox.id, inbox)
    }
    await loadTest.recordReceipts(favourite)
    const load = { senders: 3, creators: 1, readers: 1, isPersistent: true, favourite }
    loadTest.loads = deployment.targets.map((target) => startLoad(target, loadTest.acknowledged, load))
    // The load stops with the deployment if a test fails.
    deployment.users.push(...loadTest.loads)
    await loadTest.untilProgress()
    return loadTest
  }

  /** If the deployment has webhooks, records the deliveries of the inbox's mail. */
  private async recordReceipts({ id }: InboxJson): Promise<void> {
    const [metrics] = this.deployment.metricsOf('webhooks')
    if (metrics === undefined) return
    this.receipts = await WebhookReceipts.register(this.deployment.target, id, metrics)
    this.deployment.users.push(this.receipts)
  }

  get acknowledgements(): number {
    return this.loads.reduce((sum, load) => sum + load.acknowledgements(), 0)
  }

  /** Resolves once many more writes have been acknowledged. */
  async untilProgress(): Promise<void> {
    const enough = this.acknowledgements + PROGRESS
    await until(
      `${PROGRESS} more acknowledgements`,
      () => this.acknowledgements >= enough,
      RECOVERS_WITHIN_MS,
    )
  }

  /** Starts one more instance of a role and ends it, by SIGTERM and then by SIGKILL, while the load continues. */
  async startAndEndAnother(role: 'projector' | 'lifecycle' | 'analytics'): Promise<void> {
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const another = await this.deployment.add(role)
      await this.untilProgress()
      await another.end(signal)
      await this.untilProgress()
    }
  }

  /**
   * Stops the load. Expects that everything acknowledged is visible once and unchanged, was never permanently refused,
   * and was delivered.
   */
  async stopAndVerify(): Promise<void> {
    await Promise.all(this.loads.map((load) => load.stop()))
    expect(this.loads.flatMap((load) => load.permanentRefusals()).map(String)).toEqual([])
    for (const target of this.deployment.targets) {
      await untilBacklogIsEmpty(target)
      await this.acknowledged.verify(target)
    }
    await this.acknowledged.verifySources(
      this.deployment.target,
      [...this.acknowledged.accepted.keys()].slice(-50),
    )
    await this.receipts?.verify(this.acknowledged)
  }
}

/** Resolves once all accepted mail is in the views. */
export async function untilBacklogIsEmpty(target: Target): Promise<void> {
  await until(
    'the backlog to be empty',
    async () => {
      const { status, body } = await call<{ backlog?: number }>(target, 'GET', '/readyz')
      return status === 200 && body.backlog === 0
    },
    RECOVERS_WITHIN_MS,
  )
}
