import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'
import type { Document } from '#apps/api/openapi/openapi-json.js'

const HEADING =
  '// Written by `npm run generate`: the schemas of the OpenAPI document, and the query of each operation.\n\n'

/** The client reads no lines of JSON, and gets the source of a message separately. */
const UNUSED: ReadonlySet<string> = new Set(['BulkSummary', 'MessageWithRaw'])

/** Parameters that the methods of the client set. */
const SET_BY_METHODS: ReadonlySet<string> = new Set(['as_of', 'cursor', 'timeout'])

/**
 * Accounts, members, quotas, domains, keys, figures, checks, errors and logs with names that explain themselves. Their
 * descriptions are in the OpenAPI document only.
 */
const UNDESCRIBED: ReadonlySet<string> = new Set([
  ...[
    'Activity',
    'AuditEvent',
    'AuditLog',
    'DeletedInbox',
    'DeletedInboxes',
    'EndedInbox',
    'Erasure',
    'EventKey',
    'EventQuota',
    'InboxTokenWithSecret',
    'InboxLabels',
    'Invitation',
    'ChangeMember',
    'InvitationWithUrl',
    'InviteMember',
    'RegisterInboxWebhook',
    'SetSignIn',
    'Member',
    'PastInbox',
    'PastMessage',
    'Quota',
    'RemovedMember',
    'SetQuota',
    'WebhookWithSecret',
  ],
  ...['Account', 'AccountLimits', 'AccountWithKey', 'ChangeAccount', 'Limits', 'OpenAccount'],
  ...['Attempt', 'Authentication', 'Delivery', 'Position', 'Replay', 'ReplayOfDeliveries', 'ReplayOfRange'],
  ...['ChangeDomain', 'Domain', 'DomainCatchAll', 'DomainRecord', 'EventDomain', 'HostedDomain', 'OwnDomain'],
  ...['CheckedLink', 'ClientSupport', 'HtmlCheck', 'HtmlPosition', 'HtmlWarning', 'RefusedMail'],
  ...['Event', 'Fault', 'NearMiss', 'Problem', 'RotateWebhookSecret', 'RunProblem', 'Version'],
  ...['ErasedMail', 'ManifestLine', 'MissingMail', 'RunDifference', 'RunSummary'],
  ...['IssueKey', 'Key', 'KeyUsage', 'KeyWithSecret', 'RotateKey'],
  ...['UsageReport', 'UsageRow', 'UsageTimelineBucket'],
])

/**
 * The types of the TypeScript client. To keep its package small, they leave out examples, the schemas and parts of
 * operations that the client does not use, and of each description all but the first sentence.
 */
export async function renderClientTypes(document: Document): Promise<string> {
  const paths: Record<string, Record<string, object>> = {}
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      if (operation['x-alias-of'] !== undefined) continue
      const parameters = operation.parameters.filter(
        (each) => each.in === 'query' && !SET_BY_METHODS.has(each.name),
      )
      if (parameters.length === 0) continue
      paths[path] = {
        ...paths[path],
        [method]: { operationId: operation.operationId, parameters, responses: {} },
      }
    }
  }
  const { openapi, info, components } = document
  const schemas = Object.entries(components.schemas)
    .filter(([name]) => !UNUSED.has(name))
    .map(([name, schema]) => [name, UNDESCRIBED.has(name) ? without(schema, 'description') : schema] as const)
  const reduced = { openapi, info, paths, components: { schemas: Object.fromEntries(schemas) } }
  const types = astToString(await openapiTS(without(reduced, 'examples') as OpenAPI3))
  // Paths repeat the operations, tags repeat the types, and the rest of an operation is empty.
  const used = types.slice(types.indexOf('export interface components'))
  return (
    HEADING +
    used
      .replaceAll('@description ', '')
      .replaceAll(/^.*(\bnever;|\* @enum \{.*|\* Format: .*)\n/gm, '')
      .replaceAll(/\/\*\*\n *(\* .*)\n *\*\//g, '/*$1 */')
      .replaceAll(/(\/\*\* .*?\.) .*(?= \*\/)/g, '$1')
      .replaceAll('    ', '\t')
  )
}

function without(value: object, member: string): object {
  const text = JSON.stringify(value, (name, each: unknown) => (name === member ? undefined : each))
  return JSON.parse(text) as object
}
