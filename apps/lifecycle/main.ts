import 'reflect-metadata'
import { runRole } from '#libs/process/run-role.js'
import { startLifecycle } from './lifecycle.js'

await runRole('lifecycle', startLifecycle)
