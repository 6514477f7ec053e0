import { globSync, readFileSync } from 'node:fs'
import { parse } from 'yaml'

/* The files in this folder that Grafana reads, as far as queries need them. */

export interface DataSource {
  type: string
  uid: string
}

interface Target {
  datasource: DataSource
  editorType: string
  queryType: string
  format: number
  rawSql: string
}

export interface Panel {
  id: number
  type: string
  title: string
  datasource: DataSource
  gridPos: { h: number; w: number; x: number; y: number }
  interval?: string
  fieldConfig: { overrides: { matcher: { id: string; options: string } }[] }
  options: { sortBy?: { displayName: string }[] }
  targets: Target[]
}

export interface Variable {
  name: string
  datasource: DataSource
  query: string
}

export interface Dashboard {
  uid: string
  title: string
  schemaVersion: number
  /** Default time range: `now-6h`. */
  time: { from: string }
  templating: { list: Variable[] }
  panels: Panel[]
}

export interface AlertRule {
  uid: string
  title: string
  condition: string
  data: {
    refId: string
    datasourceUid: string
    relativeTimeRange?: { from: number; to: number }
    model: {
      rawSql?: string
      type?: string
      expression?: string
      conditions?: { evaluator: { type: string; params: number[] } }[]
    }
  }[]
}

const FOLDER = 'infra/grafana'

export function dashboards(): Dashboard[] {
  return globSync(`${FOLDER}/dashboards/*.json`)
    .toSorted()
    .map((path) => JSON.parse(readFileSync(path, 'utf8')) as Dashboard)
}

export function dataSources(): DataSource[] {
  return provisioned<{ datasources: DataSource[] }>('datasources').flatMap(({ datasources }) => datasources)
}

export function alertRules(): AlertRule[] {
  const files = provisioned<{ groups: { rules: AlertRule[] }[] }>('alerting')
  return files.flatMap(({ groups }) => groups.flatMap(({ rules }) => rules))
}

function provisioned<File>(kind: string): File[] {
  return globSync(`${FOLDER}/provisioning/${kind}/*.yml`).map(
    (path) => parse(readFileSync(path, 'utf8')) as File,
  )
}
