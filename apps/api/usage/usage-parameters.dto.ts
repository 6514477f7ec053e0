import { ArrayMinSize, IsIn, IsOptional, Matches } from 'class-validator'
import {
  EXPORT_FORMATS,
  EXPORT_TABLES,
  USAGE_INTERVALS,
  type ExportFormat,
  type ExportTable,
  type UsageInterval,
} from '#libs/ports/usage/usage-store.js'
import { IsTimeLimit } from '../http/list-pages.js'
import { AreLabelFilters } from '../inboxes/inbox-requests.dto.js'
import { DescribeProperty } from '../openapi/describe.js'

const GROUPING = /^(none|key|environment|label\.[^:]{1,64})$/u

const LABEL = 'Only usage with the label `<name>:<value>`.'

export class UsageSpan {
  @IsTimeLimit('The start of the span (RFC 3339).')
  from?: string

  @IsTimeLimit('The end of the span, exclusive. Default: now.')
  to?: string
}

export class ReadUsage extends UsageSpan {
  @DescribeProperty('The length of the intervals, which are in UTC.')
  @IsIn(USAGE_INTERVALS, { message: `interval must be one of ${USAGE_INTERVALS.join(', ')}` })
  interval: UsageInterval = 'hour'

  @DescribeProperty(
    'What to group the rows of an interval by: `key`, `environment`, `label.<name>`, or `none`.',
    {
      examples: ['label.run'],
    },
  )
  @Matches(GROUPING, { message: 'group_by must be none, key, environment or label.<name>' })
  group_by: string = 'none'

  @IsOptional()
  @AreLabelFilters(LABEL)
  label?: string[]
}

export class ReadReport extends UsageSpan {
  @ArrayMinSize(1, { message: 'label must be given' })
  @AreLabelFilters(LABEL)
  label!: string[]
}

export class ExportUsage extends UsageSpan {
  @DescribeProperty('The format of the file. In CSV, `labels` is a JSON array and missing values are empty.')
  @IsIn(EXPORT_FORMATS, { message: `format must be one of ${EXPORT_FORMATS.join(', ')}` })
  format: ExportFormat = 'ndjson'

  @DescribeProperty(
    'The rows of the file: figures by key, route or webhook, each minute, hour or day; or the events of one kind. ' +
      'docs/analytics.md lists the columns.',
  )
  @IsIn(EXPORT_TABLES, { message: `table must be one of ${EXPORT_TABLES.join(', ')}` })
  table: ExportTable = 'usage'
}
