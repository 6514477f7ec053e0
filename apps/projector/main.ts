import 'reflect-metadata'
import { runRole } from '#libs/role/run-role.js'
import { startProjector } from './projector.js'

await runRole('projector', startProjector)
