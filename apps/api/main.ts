import 'reflect-metadata'
import { readPlans } from '#libs/config/plans-file.js'
import { Recorder } from '#libs/event-log/recorder.js'
import { runRole } from '#libs/process/run-role.js'
import { bootstrapAccount } from './access/bootstrap.js'
import { startApi } from './api.js'

await runRole('api', async (context) => {
  const { engine, settings, now, logger } = context
  const plans = readPlans(settings.plansFile)
  const recorder = new Recorder(engine.log, '/mayfly/api', now)
  // The key is configured on this engine: there is none to be shown.
  await bootstrapAccount({ engine, settings, recorder, now, logger, announce: () => undefined })
  const api = await startApi({ ...context, plans, isStarted: () => true })
  return { listening: { url: api.url, httpPort: api.port }, close: () => api.close() }
})
