import { attachmentMemory, memoryNeeded } from './memory-settings.js'
import { ConfigurationError, readSettings } from './settings.js'

const MIB = 1024 * 1024
const settingsOf = (memoryMib: number, more: Record<string, string> = {}) =>
  readSettings({ MAYFLY_MEMORY_MIB: String(memoryMib), ...more })

describe('MAYFLY_MEMORY_MIB', () => {
  it('does not change the defaults if it is enough', () => {
    expect(settingsOf(11_264)).toMatchObject({
      smtpMemoryBytes: 256 * MIB,
      openedMailBytes: 64 * MIB,
      parseThreads: 2,
      parseMemoryMib: 2048,
    })
    expect(attachmentMemory({ memoryMib: 11_264 })).toEqual({ threads: 2, heapMib: 512 })
  })

  it('reduces the defaults of budgets and threads so that all of them fit', () => {
    expect(settingsOf(1_024)).toMatchObject({
      smtpMemoryBytes: Math.floor((256 * MIB * 1_024) / 4_096),
      parseThreads: 1,
      parseMemoryMib: 384,
    })
    expect(settingsOf(4_096)).toMatchObject({ parseThreads: 2, parseMemoryMib: 768 })
    for (let memoryMib = 256; memoryMib < 20_000; memoryMib += 128) {
      expect(memoryNeeded(settingsOf(memoryMib))).toBeLessThanOrEqual(memoryMib)
    }
  })

  it('does not change settings that are set, if they fit', () => {
    const given = { MAYFLY_SMTP_MEMORY_BYTES: String(100 * MIB), MAYFLY_PARSE_MEMORY_MIB: '300' }
    expect(settingsOf(1_024, given)).toMatchObject({ smtpMemoryBytes: 100 * MIB, parseMemoryMib: 300 })
    expect(() => settingsOf(1_024, { MAYFLY_PARSE_MEMORY_MIB: '2048' })).toThrow(ConfigurationError)
    expect(() => settingsOf(1_024, { MAYFLY_PARSE_MEMORY_MIB: '2048' })).toThrow(/MAYFLY_MEMORY_MIB must be/)
  })

  it('causes no errors of other settings if it is not a number itself', () => {
    const errors = () => readSettings({ MAYFLY_MEMORY_MIB: 'much', MAYFLY_PARSE_MEMORY_MIB: '2048' })
    expect(errors).toThrow(/MAYFLY_MEMORY_MIB/)
    expect(errors).not.toThrow(/must be at least what/)
  })
})
