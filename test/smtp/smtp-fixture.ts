import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { pino, type Logger } from 'pino'
import { Registry } from 'prom-client'
import { startSmtp, type SmtpEdge } from '#apps/smtp/smtp-edge.js'
import { BUILT_IN_PLANS } from '#libs/domain/account/access.js'
import { readSettings, type Settings } from '#libs/runtime/config/settings.js'
import { openLmdbKeyVault, type LmdbKeyVault } from '#libs/engines/embedded/key-vault/lmdb-key-vault.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import { makeSecretKey } from '#libs/ports/key-vault/sealing.js'
import { openLmdbEventLog, type LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { ViewedTopic } from '#libs/ports/event-log/topics.js'
import { ADDRESS_BYTES, makeAddress } from '#libs/domain/inbox/new-inbox.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { inboxRowsBefore, projectInboxEvents } from '#libs/ports/read-model/projections.js'
import { openLmdbReadModel, type LmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-view-store.js'
import { openLmdbIdempotency } from '#libs/engines/embedded/idempotency/lmdb-idempotency-store.js'
import type { IdempotencyStore } from '#libs/ports/idempotency/idempotency-store.js'
import { memoryRateLimits } from '#libs/ports/rate-limit/memory-rate-limits.js'
import { InProcessSignals } from '#libs/ports/signals/signals.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxId, KeyId } from '#libs/domain/ids/typeid.js'
import { until } from '#test/harness/until.js'
import { Dialogue } from './dialogue.js'
import { eventsIn, openedMails, type ReceivedMail } from './logged-mail.js'

const DOMAIN = 'mayfly.test'
const PARTITIONS = 4
const HOUR_MS = 3_600_000

const open = new Set<SmtpFixture>()

/** The SMTP server on embedded adapters in a temporary folder, with helpers for tests. */
export class SmtpFixture {
  readonly registry = new Registry()
  readonly logLines: Record<string, unknown>[] = []
  readonly usedKeys = new Set<KeyId>()
  private nowMs = Date.now()
  private edge: SmtpEdge | null = null
  private running = new AsyncDisposableStack()
  private draining: Promise<void> | null = null
  /** End offset by partition of the mails that `newlyReceived` has returned. */
  private readonly returnedUpTo = new Map<number, number>()

  /** `viewed`: the topics whose views are complete. */
  static async open(
    overrides: Partial<Settings> = {},
    viewed: readonly ViewedTopic[] = ['inbox-events', 'account-events'],
  ): Promise<SmtpFixture> {
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-smtp-'))
    const masterKeys = MasterKeys.parse(makeSecretKey().toString('base64'))
    if (masterKeys === null) throw new Error('no master key')
    const now = () => new Date()
    const log = await openLmdbEventLog({
      path: join(folder, 'log.mdb'),
      partitions: PARTITIONS,
      retentionMs: () => null,
      now,
      onPruneError: rethrow,
    })
    const vault = await openLmdbKeyVault({
      path: join(folder, 'keys.mdb'),
      masterKeys,
      now,
      onRewriteError: rethrow,
    })
    const views = await openLmdbReadModel(join(folder, 'views.mdb'), PARTITIONS)
    const idempotency = await openLmdbIdempotency({
      path: join(folder, 'requests.mdb'),
      now,
      onPruneError: rethrow,
    })
    const environment = {
      MAYFLY_SMTP_PORT: '0',
      MAYFLY_MAIL_DOMAIN: DOMAIN,
      MAYFLY_UNKNOWN_RECIPIENTS: 'reject',
    }
    const settings = { ...readSettings(environment), ...overrides }
    const fixture = new SmtpFixture(folder, settings, log, vault, views, idempotency)
    for (const topic of viewed) {
      const { logId, partitions } = await log.topology(topic)
      for (const range of partitions) await views.store.begin(logId, range)
    }
    return fixture
  }

  /** Opens a fixture and starts the server. */
  static async started(overrides: Partial<Settings> = {}): Promise<SmtpFixture> {
    const fixture = await SmtpFixture.open(overrides)
    await fixture.start()
    return fixture
  }

  /** Closes all open fixtures. Clients first, because they would delay the drain. */
  static async closeAll(): Promise<void> {
    Dialogue.closeAll()
    await Promise.all([...open].map((fixture) => fixture.close()))
  }

  readonly signals = new InProcessSignals()
  private readonly limits = memoryRateLimits()

  private constructor(
    readonly folder: string,
    readonly settings: { -readonly [Name in keyof Settings]: Settings[Name] },
    readonly log: LmdbEventLog,
    readonly vault: LmdbKeyVault,
    readonly views: LmdbReadModel,
    readonly idempotency: IdempotencyStore,
  ) {
    open.add(this)
  }

  now = (): Date => new Date(this.nowMs)

  advance(ms: number): void {
    this.nowMs += ms
  }

  async start(logger: Logger = this.logger()): Promise<SmtpEdge> {
    this.running = new AsyncDisposableStack()
    this.draining = null
    this.edge = await startSmtp({
      running: this.running,
      plans: BUILT_IN_PLANS,
      engine: {
        log: this.log,
        vault: this.vault,
        inboxes: this.views.queries,
        accounts: this.views.accounts,
        signals: this.signals,
        limits: this.limits,
        idempotency: this.idempotency,
        keyUse: { touch: (keyId) => this.usedKeys.add(keyId) },
      },
      settings: this.settings,
      tlsFolder: join(this.folder, 'tls'),
      logger,
      registry: this.registry,
      now: this.now,
    })
    return this.edge
  }

  get port(): number {
    if (this.edge === null) throw new Error('the edge was not started')
    return this.edge.port
  }

  /** The port for implicit TLS. */
  get tlsPort(): number {
    const port = this.edge?.tlsPort ?? null
    if (port === null) throw new Error('the edge has no port for implicit TLS')
    return port
  }

  /** Starts the views of accounts. Without them, keys may be missing. */
  async trackAccounts(): Promise<void> {
    const { logId, partitions } = await this.log.topology('account-events')
    for (const range of partitions) await this.views.store.begin(logId, range)
  }

  async drain(): Promise<void> {
    await (this.draining ??= this.running.disposeAsync())
  }

  async createInbox(maxMessages = 1_000): Promise<{ id: InboxId; address: Address }> {
    const id = mintId('inb')
    const address = makeAddress(randomBytes(ADDRESS_BYTES), DOMAIN)
    await this.vault.create(id)
    const createdAt = this.now()
    await this.record({
      type: 'InboxCreated',
      inboxId: id,
      accountId: mintId('acc'),
      environment: 'development',
      keyId: mintId('key'),
      address,
      duration: '1h',
      labels: {},
      maxMessages,
      isProtected: false,
      faults: null,
      cause: null,
      createdAt,
      expiresAt: new Date(createdAt.getTime() + HOUR_MS),
      sealed: Buffer.from('details'),
    })
    await this.project()
    return { id, address }
  }

  async record(event: InboxEvent): Promise<void> {
    const attribution = { accountId: mintId('acc'), environment: 'development', keyId: null }
    await new Recorder(this.log, '/mayfly/api', this.now).record(event, attribution)
  }

  /** Updates the views to the end of the log, as the projector would, but without content. */
  async project(): Promise<void> {
    const { partitions } = await this.log.topology('inbox-events')
    for (const range of partitions) {
      const { topic, partition, end } = range
      const progress = await this.views.queries.progress(range)
      const from = progress?.position ?? 0
      const events = await eventsIn(this.log, { topic, partition, first: from, end })
      const { store } = this.views
      const { changes } = projectInboxEvents(await inboxRowsBefore(store, events), events)
      await store.apply({ topic, partition, from, to: end, changes, contents: [] })
    }
  }

  /** All mails on the log, decrypted, in the order of each partition. */
  async received(): Promise<ReceivedMail[]> {
    return openedMails(this.log, this.vault, (await this.log.topology('inbox-events')).partitions)
  }

  /** The mails on the log that no earlier call has returned. */
  async newlyReceived(): Promise<ReceivedMail[]> {
    const { partitions } = await this.log.topology('inbox-events')
    const unread = partitions.map((range) => ({
      ...range,
      first: this.returnedUpTo.get(range.partition) ?? range.first,
    }))
    for (const { partition, end } of partitions) this.returnedUpTo.set(partition, end)
    return openedMails(this.log, this.vault, unread)
  }

  async metric(name: string): Promise<number> {
    const values = (await this.registry.getSingleMetric(name)?.get())?.values ?? []
    return values.reduce((sum, { value }) => sum + value, 0)
  }

  /** Resolves once the server counts that many connections. */
  async untilConnectionsAre(count: number): Promise<void> {
    const look = async () => (await this.metric('mayfly_smtp_connections')) === count
    await until(`${count} connections`, look)
  }

  async close(): Promise<void> {
    open.delete(this)
    await this.drain()
    await this.log.close()
    await this.vault.close()
    await this.views.close()
    await this.idempotency.close()
    await this.signals.close()
    await rm(this.folder, { recursive: true })
  }

  private logger(): Logger {
    const write = (line: string) => this.logLines.push(JSON.parse(line) as Record<string, unknown>)
    return pino({ level: 'debug' }, { write })
  }
}

function rethrow(error: unknown): never {
  throw error
}
