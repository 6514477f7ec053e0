import 'reflect-metadata'
import { runRole } from '#libs/role/run-role.js'
import { startProjector } from './projector.js'

await runRole('projector', async (context) => {
  const projector = await startProjector(context)
  projector.warmUp()
  return {}
})
