import 'reflect-metadata'
import { runRole } from '#libs/role/run-role.js'
import { startWebhooks } from './webhooks.js'

await runRole('webhooks', startWebhooks)
