import 'reflect-metadata'
import { Recorder } from '#libs/event-log/recorder.js'
import { runRole } from '#libs/process/run-role.js'
import { bootstrapAccount } from './access/bootstrap.js'
import { startApi } from './api.js'

await runRole('api', async (context) => {
  const { engine, settings, now, logger } = context
  const recorder = new Recorder(engine.log, '/mayfly/api', now)
  // The key is configured on this engine: there is none to be shown.
  await bootstrapAccount({ engine, settings, recorder, now, logger, announce: () => undefined })
  const api = await startApi({ ...context, isStarted: () => true })
  return { listening: { url: api.url, httpPort: api.port }, close: () => api.close() }
})
