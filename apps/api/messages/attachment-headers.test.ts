import { attachmentHeaders } from './attachment-headers.js'
import { servedType } from './content-worker.js'

describe('the headers of an attachment', () => {
  test.each([
    { filename: 'a.pdf', disposition: 'attachment; filename=a.pdf' },
    { filename: '../../etc/passwd', disposition: 'attachment; filename=passwd' },
    { filename: 'C:\\Windows\\evil.exe', disposition: 'attachment; filename=evil.exe' },
    { filename: 'a\r\nX-Evil: 1', disposition: 'attachment; filename="aX-Evil: 1"' },
    { filename: '', disposition: 'attachment; filename=attachment' },
    { filename: '..', disposition: 'attachment; filename=attachment' },
    { filename: 'folder/', disposition: 'attachment; filename=attachment' },
    { filename: '.bashrc', disposition: 'attachment; filename=bashrc' },
    { filename: '. .a. .', disposition: 'attachment; filename=a' },
    { filename: 'cod\u202efdp.exe', disposition: 'attachment; filename=codfdp.exe' },
    { filename: 'a\u2066b\u2069\u200f\u2028.txt', disposition: 'attachment; filename=ab.txt' },
    { filename: 'a\0.txt', disposition: 'attachment; filename=a.txt' },
    { filename: 'CON', disposition: 'attachment; filename=_CON' },
    { filename: 'nul.tar.gz', disposition: 'attachment; filename=_nul.tar.gz' },
    { filename: 'lpt1 .txt', disposition: 'attachment; filename="_lpt1 .txt"' },
    { filename: 'console.txt', disposition: 'attachment; filename=console.txt' },
    { filename: `${'a'.repeat(199)}😀`, disposition: `attachment; filename=${'a'.repeat(199)}` },
    {
      filename: `${'a'.repeat(5_000)}.pdf`,
      disposition: `attachment; filename=${'a'.repeat(196)}.pdf`,
    },
    {
      filename: `${'漢'.repeat(300)}.pdf`,
      disposition: `attachment; filename="${'?'.repeat(65)}.pdf"; filename*=UTF-8''${'%E6%BC%A2'.repeat(65)}.pdf`,
    },
    {
      filename: 'Rechnung €.pdf',
      disposition: `attachment; filename="Rechnung ?.pdf"; filename*=UTF-8''Rechnung%20%E2%82%AC.pdf`,
    },
  ])('name $filename as $disposition', ({ filename, disposition }) => {
    expect(attachmentHeaders(filename, 'application/pdf')['content-disposition']).toBe(disposition)
  })

  test.each([
    { contentType: 'application/pdf', served: 'application/pdf' },
    { contentType: 'image/png', served: 'image/png' },
    { contentType: 'text/html', served: 'application/octet-stream' },
    { contentType: 'image/svg+xml', served: 'application/octet-stream' },
    { contentType: 'application/vnd.mozilla.xul+xml', served: 'application/octet-stream' },
    { contentType: 'application/vnd.wap.xhtml+xml', served: 'application/octet-stream' },
    { contentType: 'multipart/related', served: 'application/octet-stream' },
    { contentType: 'text/plain; charset=x\r\nX-Evil: 1', served: 'application/octet-stream' },
  ])('have the media type $served for $contentType', ({ contentType, served }) => {
    expect(servedType(contentType, Buffer.from('x'))).toBe(served)
  })

  test.each([
    { pdf: '%PDF-1.7\n1 0 obj <</Type/Catalog/Pages 2 0 R>>', served: 'application/pdf' },
    { pdf: '%PDF-1.7\n<</S/JavaScript/JS(app.alert(1))>>', served: 'application/octet-stream' },
    { pdf: '%PDF-1.7\n<</S/#4aava#53cript>>', served: 'application/octet-stream' },
    { pdf: '%PDF-1.7\n<</S/Launch/F(calc.exe)>>', served: 'application/octet-stream' },
    { pdf: '%PDF-1.7\n<</JSON 1/Launcher 2>>', served: 'application/pdf' },
  ])('have the media type $served for the PDF $pdf', ({ pdf, served }) => {
    expect(servedType('application/pdf', Buffer.from(pdf))).toBe(served)
  })
})
