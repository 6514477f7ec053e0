import { join, resolve } from 'node:path'
import { runRole } from '#libs/role/run-role.js'
import { listeningFacts, startSmtp } from './smtp-edge.js'

await runRole('smtp', async (context) => {
  const tlsFolder = join(resolve(context.settings.dataDir), 'tls')
  const edge = await startSmtp({ ...context, tlsFolder })
  return { listening: listeningFacts(edge), close: () => edge.drain() }
})
