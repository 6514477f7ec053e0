import 'reflect-metadata'
import { rereadPlans } from '#libs/runtime/config/plans-file.js'
import { runRole } from '#libs/role/run-role.js'
import { startWebhooks } from './webhooks.js'

await runRole('webhooks', (context) =>
  startWebhooks({ ...context, plans: rereadPlans(context.settings, context.logger) }),
)
