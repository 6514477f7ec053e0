import 'reflect-metadata'
import { runRole } from '#libs/process/run-role.js'
import { startProjector } from './projector.js'

await runRole('projector', startProjector)
