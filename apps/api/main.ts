import 'reflect-metadata'
import { rereadPlans } from '#libs/runtime/config/plans-file.js'
import { ensureConfiguredKey } from '#libs/engines/first-key.js'
import { runRole } from '#libs/role/run-role.js'
import { withinOpenFiles } from '#libs/runtime/process/open-files.js'
import { startApi } from './api.js'

await runRole('api', async (context) => {
  const { engine, now, logger, running } = context
  const settings = withinOpenFiles(context.settings, logger)
  const plans = rereadPlans(settings, logger)
  await ensureConfiguredKey({ engine, settings, now, logger })
  const api = await startApi({
    ...context,
    settings,
    plans,
    isStarted: () => true,
    smtpPort: () => settings.smtpPort,
  })
  running.defer(() => api.close())
  return { listening: { url: api.url, httpPort: api.port } }
})
