import 'reflect-metadata'
import { runRole } from '#libs/process/run-role.js'
import { startWebhooks } from './webhooks.js'

await runRole('webhooks', startWebhooks)
