package fetch

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// file is a regular file of an archive.
type file struct {
	name string
	data []byte
	time time.Time
}

// unpacking is what is left of the limits while an archive, and the archives in it, are unpacked.
type unpacking struct {
	limits Limits
	bytes  int64
	files  int
	// nodes are the values in files that are parsed.
	nodes int64
}

func (l Limits) unpacking() *unpacking {
	return &unpacking{limits: l, bytes: l.Unpacked, files: l.Files, nodes: l.Unpacked / 64}
}

// charged takes what is read, headers and padding included, off what is left.
type charged struct {
	from io.Reader
	left *int64
	err  error
}

func (c *charged) Read(p []byte) (int, error) {
	if *c.left < 0 {
		return 0, c.err
	}
	n, err := c.from.Read(p)
	*c.left -= int64(n)
	if *c.left < 0 {
		return 0, c.err
	}
	return n, err
}

// read returns the regular files of a tar archive, which may be compressed with gzip.
func (u *unpacking) read(archive io.Reader) ([]file, error) {
	buffered := bufio.NewReader(archive)
	var plain io.Reader = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, broken(err)
		}
		plain = unzipped
	}
	plain = &charged{from: plain, left: &u.bytes, err: u.overflow()}
	files, err := u.entries(tar.NewReader(plain))
	if err != nil {
		return nil, err
	}
	// What follows the last entry is read too, so that gzip's checksum is compared.
	if _, err := io.Copy(io.Discard, plain); err != nil {
		return nil, broken(err)
	}
	return files, nil
}

func (u *unpacking) overflow() error {
	return tooLarge("Limits.Unpacked", "make it smaller", "it unpacks to more than %s", size(u.limits.Unpacked))
}

func (u *unpacking) entries(archive *tar.Reader) ([]file, error) {
	var files []file
	tree := newTree()
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, broken(err)
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if u.files--; u.files < 0 {
			return nil, tooLarge("Limits.Files", "pack fewer files", "it has more than %d entries", u.limits.Files)
		}
		name, err := u.name(header)
		if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		f, err := u.file(archive, header, name)
		if err != nil {
			return nil, err
		}
		if err := tree.add(name); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
}

// name returns the path of an entry, with slashes and without "." in it.
func (u *unpacking) name(header *tar.Header) (string, error) {
	if len(header.Name) > u.limits.Path {
		return "", tooLarge("Limits.Path", "use shorter paths", "it has a path of %d bytes, and %d are allowed", len(header.Name), u.limits.Path)
	}
	name := strings.ReplaceAll(header.Name, `\`, "/")
	if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
		return "", permanent(ErrInvalid, "pack it with paths relative to its top", "it has the unsafe path %q", header.Name)
	}
	name = path.Clean(name)
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return "", permanent(ErrInvalid, "rename the file", "it has the impossible path %q", header.Name)
	}
	return name, nil
}

func (u *unpacking) file(archive io.Reader, header *tar.Header, name string) (file, error) {
	switch header.Typeflag {
	case tar.TypeReg:
	case tar.TypeSymlink, tar.TypeLink:
		return file{}, permanent(ErrInvalid, "pack the files that links point to (`tar --dereference --hard-dereference`)",
			"%q is a link, and only regular files are taken", name)
	default:
		return file{}, permanent(ErrInvalid, "pack regular files only", "%q is no regular file", name)
	}
	if name == "." {
		return file{}, permanent(ErrInvalid, "pack it again", "it has a file without a name")
	}
	if header.Size > u.limits.File {
		return file{}, tooLarge("Limits.File", "split the file or leave it out", "the file %q has %s, and %s are allowed",
			name, size(header.Size), size(u.limits.File))
	}
	// Memory is taken as data comes, and not for what the header says.
	var data bytes.Buffer
	before := u.bytes
	written, err := io.Copy(&data, archive)
	if err != nil {
		return file{}, broken(err)
	}
	// The holes of a sparse file are in no archive, but take memory.
	u.bytes -= max(0, written-(before-u.bytes))
	if u.bytes < 0 {
		return file{}, u.overflow()
	}
	return file{name: name, data: data.Bytes(), time: header.ModTime}, nil
}

// broken is the error of an archive that can't be read, unless the reader stopped at a limit.
func broken(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return permanent(ErrInvalid, "pack and publish it again as .tar or .tar.gz", "it is no tar archive that can be read (%v)", err)
}

// tree knows the paths that are taken, so that each means one thing.
type tree struct {
	files, folders map[string]bool
}

func newTree() tree { return tree{files: map[string]bool{}, folders: map[string]bool{}} }

// add takes the path of a file.
func (t tree) add(name string) error {
	if t.files[name] || t.folders[name] {
		return permanent(ErrInvalid, "pack it again", "it has %q twice", name)
	}
	t.files[name] = true
	for dir := path.Dir(name); dir != "." && !t.folders[dir]; dir = path.Dir(dir) {
		if t.files[dir] {
			return permanent(ErrInvalid, "pack it again", "it has %q as a file and as a folder", dir)
		}
		t.folders[dir] = true
	}
	return nil
}

// nodes is not less than the number of values in a YAML or JSON text. Each of them takes a hundred bytes and more when it is
// parsed, so that the length of a text does not bound the memory that it takes.
func nodes(text []byte) int64 {
	var n int64
	for _, b := range text {
		switch b {
		case '\n', '\r', ',', ':', '-', '?', '[', '{':
			n++
		}
	}
	return n
}
