import { join, resolve } from 'node:path'
import { rereadPlans } from '#libs/runtime/config/plans-file.js'
import { runRole } from '#libs/role/run-role.js'
import { withinOpenFiles } from '#libs/runtime/process/open-files.js'
import { listeningFacts, startSmtp } from './smtp-edge.js'

await runRole('smtp', async (context) => {
  const settings = withinOpenFiles(context.settings, context.logger)
  const plans = rereadPlans(settings, context.logger)
  const tlsFolder = join(resolve(settings.dataDir), 'tls')
  return { listening: listeningFacts(await startSmtp({ ...context, settings, plans, tlsFolder })) }
})
