import { join, resolve } from 'node:path'
import type { Logger } from 'pino'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { bootstrapAccount } from '#apps/api/access/bootstrap.js'
import { startApi } from '#apps/api/api.js'
import { startLifecycle } from '#apps/lifecycle/lifecycle.js'
import { startProjector } from '#apps/projector/projector.js'
import { startSmtp } from '#apps/smtp/smtp-edge.js'
import type { Settings } from '#libs/config/settings.js'
import { openEmbeddedEngine } from '#libs/engine/embedded.js'
import { Recorder } from '#libs/event-log/recorder.js'
import type { Welcome } from './welcome.js'

/*
 * Every role in one process on the embedded engine. The projector comes first, so that the views know what they
 * don't know; those that take something in come last, and are the first to stop.
 */

export interface StandaloneOptions {
  settings: Settings
  logger: Logger
  now: () => Date
  /** Shows the first API key where one is made. */
  announce: (secret: string) => void
}

export interface Standalone extends Welcome {
  /** Takes nothing new in, finishes what is under way, and leaves nothing half written. */
  close(): Promise<void>
}

/** Resolves once every role runs; what had started is closed again where one can't. */
export async function startStandalone(options: StandaloneOptions): Promise<Standalone> {
  const { settings, logger, now, announce } = options
  const closers: (() => Promise<void>)[] = []
  const close = async () => {
    for (let closeLast = closers.pop(); closeLast !== undefined; closeLast = closers.pop()) await closeLast()
  }
  try {
    const registry = new Registry()
    collectDefaultMetrics({ register: registry })
    const engine = await openEmbeddedEngine({
      settings,
      now,
      onError: (error, during) => logger.error({ err: error }, `${during} failed: tried again`),
    })
    closers.push(() => engine.close())
    const projector = await startProjector({ engine, settings, logger, registry })
    closers.push(() => projector.close())
    const lifecycle = await startLifecycle({ engine, now, logger, registry })
    closers.push(() => lifecycle.close())

    let isStarted = false
    const recorder = new Recorder(engine.log, '/mayfly/api', now)
    const firstKey = await bootstrapAccount({ engine, settings, recorder, now, announce })
    const api = await startApi({ engine, settings, now, logger, registry, isStarted: () => isStarted })
    closers.push(() => api.close())
    const tlsFolder = join(resolve(settings.dataDir), 'tls')
    const smtp = await startSmtp({ engine, settings, tlsFolder, logger, registry, now })
    closers.push(() => smtp.drain())
    isStarted = true
    const { url, port: httpPort } = api
    return { url, httpPort, smtpHost: settings.smtpHost, smtpPort: smtp.port, firstKey, close }
  } catch (error) {
    await close()
    throw error
  }
}
