import 'reflect-metadata'
import { runRole } from '#libs/role/run-role.js'
import { startAnalytics } from './analytics.js'

await runRole('analytics', startAnalytics)
