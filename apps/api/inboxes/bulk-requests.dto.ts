import { ArrayMaxSize, ArrayMinSize, IsArray, IsInt, Matches, Max, Min } from 'class-validator'
import Type from 'typebox'
import { idPattern } from '#libs/domain/ids/typeid.js'
import { IfGiven } from '../http/rules.js'
import { Count, DescribeBody, DescribeProperty, OrNull } from '../openapi/describe.js'
import { Problem } from '../openapi/problem-responses.js'
import { InboxProperties, LABEL_FILTER } from './inbox-requests.dto.js'

/*
 * The bodies that create and delete many inboxes, and their answers.
 */

export const MAX_INBOXES = 10_000

/** The body of POST /v1/inboxes/bulk. */
@DescribeBody({
  description:
    'New inboxes. All have the same properties, and `name` gets a number: `user-1`, `user-2` and so on.',
  example: { count: 100, duration: '30m', name: 'user', labels: { run: '42' } },
})
export class CreateInboxes extends InboxProperties {
  @DescribeProperty('The number of inboxes.')
  @Max(MAX_INBOXES, { message: `count may be at most ${MAX_INBOXES}` })
  @Min(1, { message: 'count must be at least 1' })
  @IsInt({ message: 'count must be a whole number' })
  count!: number
}

const IDS = `ids must be 1 to ${MAX_INBOXES} ids of inboxes`

/** The body of POST /v1/inboxes/bulk-delete. */
@DescribeBody({
  description: 'Which inboxes to delete.',
  example: { label: 'run:42' },
  variants: {
    DeleteInboxesById: { description: 'Single inboxes.', required: ['ids'] },
    DeleteInboxesByLabel: { description: 'All inboxes with a label.', required: ['label'] },
  },
})
export class DeleteInboxes {
  @DescribeProperty('The ids of the inboxes.', {
    items: { type: 'string', pattern: idPattern('inb') },
    examples: [['inb_01jd6b8w0mf2ja3yz5c7e9g1hk']],
  })
  @IfGiven()
  @Matches(new RegExp(idPattern('inb')), { each: true, message: IDS })
  @ArrayMaxSize(MAX_INBOXES, { message: IDS })
  @ArrayMinSize(1, { message: IDS })
  @IsArray({ message: IDS })
  ids?: string[]

  @DescribeProperty('A label `<name>:<value>`.', { examples: ['run:42'] })
  @IfGiven()
  @Matches(LABEL_FILTER, { message: 'label must be <name>:<value>' })
  label?: string
}

export const DeletedInboxes = Type.Object(
  {
    deleted: Count('The number of inboxes that this request has deleted.'),
    remaining: Count('The number of inboxes that are left to delete. Repeat the request until it is 0.'),
  },
  {
    $id: 'DeletedInboxes',
    description: 'What was deleted.',
    examples: [{ deleted: 10_000, remaining: 2_500 }],
  },
)

export const BulkSummary = Type.Object(
  {
    created: Count('The number of inboxes in the lines above.'),
    failed: Count('The number of inboxes that were not created.'),
    problem: OrNull(Problem, 'Why they were not created; null if all were.'),
  },
  {
    $id: 'BulkSummary',
    description: 'The last line of inboxes that are created in one request.',
    examples: [{ created: 100, failed: 0, problem: null }],
  },
)
