import type { Logger } from 'pino'
import { beginViews } from '#libs/ports/read-model/view-store.js'
import { measuredUsage } from '#libs/role/measured-usage.js'
import { createRoleService, RoleConsumers } from '#libs/role/role-consumers.js'
import type { EngineContext } from '#libs/role/run-role.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { InboxProjector } from './inbox-projector.js'
import { ParserPool } from './parser-pool.js'
import { type ProjectorMetrics, projectorMetrics } from './projector-metrics.js'
import { ProjectorController, MessageVisibility, type ProjectorPorts } from './projector.controller.js'
import { watchViews } from './views-watch.js'

/*
 * The projector consumes the topics that views are computed from, parses mail in threads, and updates the views. A message
 * is in the views once it is parsed. The projector starts at the offset that the views have reached, not at its group's
 * committed offset, so it neither skips nor repeats a record after a crash or a restore.
 */

export interface Projector {
  /** Starts a parsing thread. Otherwise the first mail waits about 0.2 s for one. */
  warmUp(): void
}

/**
 * Resolves once the views of every partition know how far they lag behind the log. Closing waits until the batches in
 * progress are in the views, or abandoned.
 */
export async function startProjector(context: EngineContext): Promise<Projector> {
  const { engine, settings, now, logger, registry, running } = context
  const { log, projections, inboxes } = engine
  const metrics = projectorMetrics(registry)
  const usage = measuredUsage({ log, source: '/mayfly/projector', now, logger, registry })
  running.defer(() => usage.close())
  const parser = parserOf(settings, logger, metrics)
  running.defer(() => parser.close())
  const inboxProjector = new InboxProjector(projections, engine.vault, parser)
  const visibility = new MessageVisibility(usage, inboxes, now)
  const ports: ProjectorPorts = { ...engine, logger, metrics, visibility, inboxProjector }

  const consumers = new RoleConsumers({
    ...{ log, group: 'projector', logger, registry },
    startAt: async (partition) => {
      const { range, offset } = await beginViews(projections, log, partition)
      await visibility.begin(partition)
      if (offset < range.end) logger.info({ ...range, offset }, 'views are catching up with the log')
      return { offset }
    },
  })
  const service = await createRoleService(consumers, ProjectorController, ports)
  await service.listen()
  running.defer(() => service.close())
  const watch = watchViews({
    log,
    queries: inboxes,
    consumers,
    onLost: (partition) =>
      logger.warn(partition, 'the views were lost or restored from an older copy: rebuilding'),
    onError: (error) => logger.debug({ err: error }, 'checking the views failed'),
  })
  watch.start()
  running.defer(() => watch.stop())
  return { warmUp: () => parser.warmUp() }
}

function parserOf(settings: Settings, logger: Logger, metrics: ProjectorMetrics): ParserPool {
  return new ParserPool({
    threads: settings.parseThreads,
    timeoutMs: settings.parseTimeoutMs,
    slowTimeoutMs: settings.parseSlowTimeoutMs,
    memoryMib: settings.parseMemoryMib,
    inboxBudgetMs: settings.parseInboxBudgetMs,
    accountBudgetMs: settings.parseAccountBudgetMs,
    onThreadLost: (error) => logger.warn({ err: error }, 'a parsing thread was lost'),
    onParsed: (cpuMs) => metrics.parseSeconds.observe(cpuMs / 1000),
    onFallback: (reason) => metrics.fallbacks.inc({ reason }),
  })
}
