import 'reflect-metadata'
import { runRole } from '#libs/role/run-role.js'
import { startLifecycle } from './lifecycle.js'

await runRole('lifecycle', startLifecycle)
