import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BUILT_IN_PLANS } from '#libs/domain/account/access.js'
import { readPlans } from './plans-file.js'
import { ConfigurationError } from './settings.js'

const enterprise = { has_api_access: true, requests_per_minute: 50, retention: '7d', max_messages: 10 }

describe('a file of plans', () => {
  let folder: string
  let path: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-plans-'))
    path = join(folder, 'plans.json')
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function errorsOf(content: unknown): Promise<readonly string[]> {
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
    try {
      readPlans(path)
    } catch (error) {
      if (error instanceof ConfigurationError) return error.errors
      throw error
    }
    return []
  }

  it('needs the plan free for public inboxes', async () => {
    await writeFile(path, JSON.stringify({ enterprise }))
    expect(readPlans(path).size).toBe(1)
    expect(() => readPlans(path, true)).toThrow(/must have the plan free if MAYFLY_PUBLIC_INBOX is true/)
  })

  it('replaces the built-in plans', async () => {
    expect(readPlans(null)).toBe(BUILT_IN_PLANS)
    const free = { has_api_access: false, requests_per_minute: 0, retention: '2h', max_messages: 5 }
    const big = { ...enterprise, account_requests_per_minute: 5_000 }
    const quotas = { max_inboxes: 3, max_stored_bytes: 2_048, max_domains: 7 }
    const content = { enterprise: { ...big, per_account: true }, 'for-free': { ...free, ...quotas } }
    await writeFile(path, JSON.stringify(content))
    expect([...readPlans(path).values()]).toEqual([
      {
        name: 'enterprise',
        hasApiAccess: true,
        isPerAccount: true,
        requestsPerMinute: 50,
        accountRequestsPerMinute: 5_000,
        retention: { text: '7d', ms: 604_800_000 },
        maxMessages: 10,
        maxInboxes: 10_000_000,
        maxInboxesPerDay: 1_000_000_000,
        maxMessagesPerDay: 1_000_000_000,
        maxStoredBytes: 2 ** 40,
        maxWebhooks: 100_000,
        maxDomains: 1_000,
        maxMembers: 1_000,
      },
      {
        name: 'for-free',
        hasApiAccess: false,
        isPerAccount: false,
        requestsPerMinute: 0,
        accountRequestsPerMinute: 2_400,
        retention: { text: '2h', ms: 7_200_000 },
        maxMessages: 5,
        maxInboxes: 3,
        maxInboxesPerDay: 1_000_000_000,
        maxMessagesPerDay: 1_000_000_000,
        maxStoredBytes: 2_048,
        maxWebhooks: 100_000,
        maxDomains: 7,
        maxMembers: 1_000,
      },
    ])
  })

  test.each([
    { content: '{', error: /MAYFLY_PLANS: the file .* can't be read as JSON/ },
    { content: [], error: /must contain an object/ },
    { content: {}, error: /must have a plan "enterprise" with API access/ },
    {
      content: { enterprise: { ...enterprise, has_api_access: false } },
      error: /must have a plan "enterprise"/,
    },
    { content: { enterprise, 'Big One': enterprise }, error: /"Big One" is not a valid plan name/ },
    { content: { enterprise: null }, error: /"enterprise" must be an object/ },
    { content: { enterprise: { ...enterprise, has_api_access: 'yes' } }, error: /needs "has_api_access"/ },
    { content: { enterprise: { ...enterprise, per_account: 1 } }, error: /may have "per_account"/ },
    { content: { enterprise: { ...enterprise, requests_per_minute: 0 } }, error: /from 1 to 1000000000$/ },
    {
      content: { enterprise: { ...enterprise, requests_per_minute: 1.5 } },
      error: /needs "requests_per_minute"/,
    },
    {
      content: { enterprise: { ...enterprise, account_requests_per_minute: 2_399 } },
      error: /needs "account_requests_per_minute".* from 2400 to/,
    },
    { content: { enterprise: { ...enterprise, retention: '31d' } }, error: /needs "retention".*"30d"$/ },
    { content: { enterprise: { ...enterprise, max_messages: '10' } }, error: /needs "max_messages"/ },
    { content: { enterprise: { ...enterprise, max_inboxes: 0 } }, error: /needs "max_inboxes"/ },
    { content: { enterprise: { ...enterprise, max_stored_bytes: null } }, error: /needs "max_stored_bytes"/ },
    {
      content: { enterprise: { ...enterprise, price: 9 } },
      error: /has an unknown property: "price"/,
    },
  ])('is refused with the error: $error', async ({ content, error }) => {
    expect(await errorsOf(content)).toContainEqual(expect.stringMatching(error))
  })

  it('is refused if it does not exist', () => {
    expect(() => readPlans(join(folder, 'none.json'))).toThrow(/MAYFLY_PLANS: .*ENOENT/)
  })

  it('is refused with all errors at once', async () => {
    expect(await errorsOf({ enterprise: {}, starter: {} })).toHaveLength(8)
  })
})
