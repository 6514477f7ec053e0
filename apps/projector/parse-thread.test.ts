import { ParseThread } from './parse-thread.js'
import { slowMail, taskOf } from './parse-task.test-support.js'

describe('a parsing thread', () => {
  it('reports the CPU time of the current mail only', async () => {
    const thread = new ParseThread(256, () => undefined)
    try {
      const { open: _, ...task } = await taskOf(slowMail('first'))
      await thread.run([{ task, fallback: null }], () => undefined)
      expect(await thread.cpuMs()).toBeGreaterThan(0)
      await thread.run([], () => undefined)
      expect(await thread.cpuMs()).toBeNull()
    } finally {
      await thread.end()
    }
  })
})
