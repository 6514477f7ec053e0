import { domainToUnicode } from 'node:url'
import Type from 'typebox'
import { catchAll as codec, type CatchAll, type Domain as DomainState } from '#libs/domain/account/domain.js'
import { list, named, object } from '#libs/domain/event-sourcing/declare.js'
import { recordsOf } from '#libs/mail/domain-records.js'
import { IdOf, OneOf, OrNull, orNull, resource, time } from '#libs/runtime/resource.js'
import { InboxLabels } from '../inboxes/inbox-requests.dto.js'

const ACTIONS = ['reject', 'create', 'deliver'] as const
const STATES = ['pending', 'verified', 'failed', 'lapsed'] as const
const STATUSES = ['missing', 'invalid', 'valid'] as const

export interface CatchAllJson {
  action: CatchAll['action']
  inbox_id?: string
  duration?: string
  labels?: Readonly<Record<string, string>>
}

export const DomainCatchAll = Type.Unsafe<CatchAllJson>(
  Type.Object(
    {
      action: OneOf(
        ACTIONS,
        '`reject` refuses the mail, `create` makes an inbox for the address, `deliver` delivers it to one inbox.',
      ),
      inbox_id: Type.Optional(IdOf('inb', 'The inbox of `deliver`.')),
      duration: Type.Optional(
        Type.String({
          description:
            'The lifetime of the inboxes that `create` makes: a whole number and one of `m`, `h`, `d`, `w`. Default: that of a new inbox.',
          examples: ['2h'],
        }),
      ),
      labels: Type.Optional(InboxLabels),
    },
    {
      $id: 'DomainCatchAll',
      description: 'What becomes of mail to an address of the domain without an inbox.',
      examples: [{ action: 'create', duration: '2h' }],
      additionalProperties: false,
    },
  ),
)

const record = object(
  {
    type: OneOf(['TXT', 'MX'], 'The type of the record.'),
    name: Type.String({ description: 'Its full name.' }),
    zoneName: Type.String({
      description:
        'Its name in the zone of the registrable domain, as most DNS providers ask for it; `@` for the zone itself.',
    }),
    value: Type.String({ description: 'Its value.' }),
    priority: OrNull(Type.Integer(), 'The preference of an MX record; null for a TXT record.'),
    status: OneOf(
      STATUSES,
      'The result of the last check. `invalid`: there are other values only, or other MX records that senders try first.',
    ),
    found: Type.Array(Type.String(), {
      description: 'The values found in DNS, at most 10; MX as `10 mx.example.com`.',
    }),
  },
  { $id: 'DomainRecord', description: 'A DNS record that the domain must have.' },
)

const example = {
  id: 'dom_01jd6b2k8nf3gq6r9t2w5y8z1c',
  name: 'staging.example.com',
  environment: 'staging',
  state: 'pending',
  hosted: false,
  subdomains: false,
  name_taken: false,
  records: [
    {
      ...{
        type: 'TXT',
        name: '_mayfly-challenge.staging.example.com',
        zone_name: '_mayfly-challenge.staging',
      },
      ...{ value: 'token=8nf3gq6r9t2w5y8z1ck3v9x2m4p7h0ja', priority: null, status: 'valid' },
      found: ['token=8nf3gq6r9t2w5y8z1ck3v9x2m4p7h0ja'],
    },
    {
      ...{ type: 'MX', name: 'staging.example.com', zone_name: 'staging', value: 'mx.mayfly.example' },
      ...{ priority: 10, status: 'missing', found: [] },
    },
  ],
  catch_all: { action: 'create', duration: '2h' },
  created_at: '2026-11-21T09:30:00.000Z',
  verified_at: null,
  checked_at: '2026-11-21T09:31:00.000Z',
}

/** `mxHost` is the host of MX records. */
export const { schema: Domain, json: domainJson } = resource(
  'Domain',
  { description: 'A domain whose mail the account receives.', examples: [example] },
  {
    id: IdOf('dom', 'The id of the domain. It never changes.'),
    name: Type.String({ description: 'The name, in Unicode.' }),
    environment: Type.String({ description: 'The environment whose inboxes receive the mail.' }),
    state: OneOf(
      STATES,
      '`pending` until all records are found; `verified`; `failed` if they are not found within 72 hours, or if another account has proved the domain since; `lapsed` if they are gone for two days.',
    ),
    hosted: Type.Boolean({ description: 'Whether it is a name below the mail domain of Mayfly.' }),
    subdomains: Type.Boolean({ description: 'Whether it includes all its subdomains.' }),
    isNameTaken: named(
      'name_taken',
      Type.Boolean({
        description:
          'Whether all records were found, but another account has the domain. It is verified at the first check that does not find the TXT record of that account.',
      }),
    ),
    records: list(record, { description: 'The DNS records that it must have; none if it is hosted.' }),
    catchAll: DomainCatchAll,
    createdAt: time('When it was registered.'),
    verifiedAt: orNull(time(''), 'Since when it is verified, without interruption; null if it never was.'),
    checkedAt: orNull(
      time(''),
      'When name servers last gave a clear answer about its records; null if they never did.',
    ),
  },
  (domain: DomainState, mxHost: string) => {
    const { name, isHosted: hosted, checks } = domain
    const records = recordsOf(domain, mxHost).map(({ check, ...each }) => ({
      ...each,
      ...checks[check],
      found: [...checks[check].found],
    }))
    const catchAll = catchAllJson(domain.catchAll)
    return { ...domain, name: domainToUnicode(name), hosted, records, catchAll }
  },
)

/** As in the event, but without labels if there are none. */
function catchAllJson(catchAll: CatchAll): CatchAllJson {
  const { labels = {}, ...json } = codec.encode(catchAll) as CatchAllJson
  return Object.keys(labels).length === 0 ? json : { ...json, labels }
}
