import { Download, File, FileArchive, FileImage, FileText, type IconNode } from 'lucide'
import { useState } from 'preact/hooks'
import type { Message, Schemas } from '#clients/typescript/src/mayfly.js'
import { attachmentName } from '#libs/mail/attachment-name.js'
import { imageTypeOf } from '#libs/mail/image-type.js'
import { formatBytes, saveFile } from '../parts/format.js'
import { FormDialog } from '../parts/controls.js'
import { Icon, IconButton } from '../parts/icon.js'
import { Failure, useAction, useLoaded } from '../parts/loading.js'
import { visibleLine } from '../parts/visible-text.js'
import { text } from '../text.js'

/** An image that is larger has no thumbnail. */
const MAX_THUMBNAIL_BYTES = 2_000_000
const MAX_THUMBNAILS = 10

const TYPE_ICONS: readonly (readonly [RegExp, IconNode])[] = [
  [/^image\//, FileImage],
  [/^text\/|pdf|word|document/, FileText],
  [/zip|tar|compress|archive/, FileArchive],
]

/** Whether it is an image that the HTML shows. */
export function isInlineImage({ inline, content_id, content_type }: Schemas['Attachment']): boolean {
  return inline && content_id !== null && content_type.startsWith('image/')
}

/** The attachments as cards. Images that the HTML shows are counted apart. */
export function Attachments({ message: { attachments } }: { message: Message }) {
  const [showsInline, setShowsInline] = useState(false)
  if (attachments.length === 0) return null
  const inline = attachments.filter(isInlineImage)
  const shown = attachments.filter((each) => showsInline || !inline.includes(each))
  return (
    <>
      {shown.map((each, index) => (
        <AttachmentCard key={each.index} attachment={each} hasThumbnail={index < MAX_THUMBNAILS} />
      ))}
      {inline.length > 0 && !showsInline && (
        <button type="button" class="chip" onClick={() => setShowsInline(true)}>
          {text.mail.inlineImages(inline.length)}
        </button>
      )}
    </>
  )
}

type Attachment = Message['attachments'][number]

function AttachmentCard({ attachment, hasThumbnail }: { attachment: Attachment; hasThumbnail: boolean }) {
  const { isRunning, error, run } = useAction()
  const { filename, content_type, size } = attachment
  const name = visibleLine(attachmentName(filename, content_type))
  const save = async () => {
    const bytes = new Uint8Array(await attachment.bytes())
    // The declared type is not used, so that the browser never opens the file as a page.
    saveFile(attachmentName(filename, content_type), [bytes], 'application/octet-stream')
  }
  const isImage = hasThumbnail && content_type.startsWith('image/') && size <= MAX_THUMBNAIL_BYTES
  const icon = TYPE_ICONS.find(([type]) => type.test(content_type))?.[1] ?? File
  return (
    <div class="attachment">
      {isImage ? <Thumbnail attachment={attachment} name={name} icon={icon} /> : <Icon of={icon} size={32} />}
      <div>
        <strong dir="auto">{name}</strong>
        <div class="muted">
          {content_type}, {formatBytes(size)}
        </div>
        {error !== null && <Failure error={error} />}
      </div>
      <IconButton
        of={Download}
        label={text.downloadWhat(name)}
        disabled={isRunning}
        onClick={() => void run(save)}
      />
    </div>
  )
}

/** The picture itself, if its bytes are of a type that browsers show without running or loading anything. */
function Thumbnail({ attachment, name, icon }: { attachment: Attachment; name: string; icon: IconNode }) {
  const [isOpen, setOpen] = useState(false)
  const image = useLoaded(
    async (signal) => {
      const bytes = await attachment.bytes({ signal })
      const type = imageTypeOf(bytes)
      return type === undefined ? null : dataUrl(bytes, type)
    },
    [attachment],
  )
  if (!image.value) return <Icon of={icon} size={32} />
  const close = () => setOpen(false)
  return (
    <>
      <button type="button" class="thumbnail" title={text.mail.image(name)} onClick={() => setOpen(true)}>
        <img src={image.value} alt={text.mail.image(name)} decoding="async" />
      </button>
      {isOpen && (
        <FormDialog title={name} onClose={close} onDone={close}>
          <img class="picture" src={image.value} alt="" />
        </FormDialog>
      )}
    </>
  )
}

function dataUrl(bytes: Uint8Array, type: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(typeof reader.result === 'string' ? reader.result : '')
    reader.onerror = () => reject(reader.error ?? new Error(type))
    reader.readAsDataURL(new Blob([new Uint8Array(bytes)], { type }))
  })
}
