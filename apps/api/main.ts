import 'reflect-metadata'
import { readPlans } from '#libs/config/plans-file.js'
import { ensureFirstKey } from '#libs/engine/first-key.js'
import { runRole } from '#libs/process/run-role.js'
import { startApi } from './api.js'

await runRole('api', async (context) => {
  const { engine, settings, now, logger } = context
  const plans = readPlans(settings.plansFile)
  // This engine requires a configured key, so none is made that would have to be shown.
  await ensureFirstKey({ engine, settings, now, logger, announce: () => undefined })
  const api = await startApi({ ...context, plans, isStarted: () => true })
  return { listening: { url: api.url, httpPort: api.port }, close: () => api.close() }
})
