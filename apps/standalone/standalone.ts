import { join, resolve } from 'node:path'
import { startAnalytics } from '#apps/analytics/analytics.js'
import { startApi } from '#apps/api/api.js'
import { startLifecycle } from '#apps/lifecycle/lifecycle.js'
import { startProjector } from '#apps/projector/projector.js'
import { startSmtp } from '#apps/smtp/smtp-edge.js'
import { startWebhooks } from '#apps/webhooks/webhooks.js'
import { readPlans } from '#libs/runtime/config/plans-file.js'
import { ensureConfiguredKey, makeFirstKey } from '#libs/engines/first-key.js'
import { onEngine } from '#libs/role/on-engine.js'
import type { ProcessContext } from '#libs/runtime/process/run-process.js'
import type { Welcome } from './welcome.js'

/*
 * Every role in one process, on either engine. The projector comes first, so that the views know what they
 * don't know; those that take something in come last, and are the first to stop.
 */

export interface StandaloneOptions extends ProcessContext {
  /** Shows the first API key, if one is made. */
  announce: (secret: string) => void
}

export interface Standalone extends Welcome {
  /** Takes nothing new in, finishes what is under way, and leaves nothing half written. */
  close(): Promise<void>
}

/** Resolves once every role runs; what had started is closed again where one can't. */
export function startStandalone({ announce, ...process }: StandaloneOptions): Promise<Standalone> {
  return onEngine('standalone', process, async ({ engine, settings, logger, now, registry, running }) => {
    const plans = readPlans(settings.plansFile)
    const projector = await startProjector({ engine, settings, now, logger, registry })
    running.defer(() => projector.close())
    const lifecycle = await startLifecycle({ engine, now, logger, registry })
    running.defer(() => lifecycle.close())
    const webhooks = await startWebhooks({ engine, settings, now, logger, registry })
    running.defer(() => webhooks.close())
    const analytics = await startAnalytics({ engine, logger, registry })
    running.defer(() => analytics.close())

    // Before anything listens: a client that knows the key may use it at once.
    await ensureConfiguredKey({ engine, settings, now, logger })
    let isStarted = false
    const api = await startApi({ engine, settings, plans, now, logger, registry, isStarted: () => isStarted })
    running.defer(() => api.close())
    const tlsFolder = join(resolve(settings.dataDir), 'tls')
    const smtp = await startSmtp({ engine, settings, tlsFolder, logger, registry, now })
    running.defer(() => smtp.drain())
    // Last, so that a new key is shown only by a start that got this far.
    const firstKey = await makeFirstKey({ engine, settings, now, logger, announce })
    isStarted = true
    const { url, port: httpPort } = api
    return { url, httpPort, smtpHost: settings.smtpHost, smtp, firstKey }
  })
}
