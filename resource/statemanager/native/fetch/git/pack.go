package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// unpack reads the objects that a server has sent, if they are within the limits: a few bytes can stand for many.
func unpack(answer io.Reader, limits fetch.Limits) (storer.EncodedObjectStorer, error) {
	pack, err := io.ReadAll(io.LimitReader(answer, limits.Download+1))
	if err != nil {
		return nil, err
	}
	if int64(len(pack)) > limits.Download {
		return nil, tooLarge(fmt.Sprintf("its commit has more than %d bytes as it is sent (Limits.Download)", limits.Download))
	}
	if err := measure(pack, limits); err != nil {
		return nil, err
	}
	objects := memory.NewStorage()
	if err := packfile.UpdateObjectStorage(objects, bytes.NewReader(pack)); err != nil {
		return nil, broken(err)
	}
	return objects, nil
}

// measure adds up what a pack comes to when it is unpacked: objects, differences, and what these make.
func measure(pack []byte, limits fetch.Limits) error {
	scanner := packfile.NewScanner(bytes.NewReader(pack))
	_, count, err := scanner.Header()
	if err != nil {
		return broken(err)
	}
	// A tree for each file and the commit, at most.
	if most := 2*limits.Files + 2; int64(count) > int64(most) {
		return tooLarge(fmt.Sprintf("its commit has more than %d objects", most))
	}
	var all int64
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return broken(err)
		}
		// A difference begins with two sizes: that of what it is made for, and that of what it makes.
		sizes := &beginning{}
		size := header.Length
		if _, _, err := scanner.NextObject(sizes); err != nil {
			return broken(err)
		}
		if header.Type == plumbing.OFSDeltaObject || header.Type == plumbing.REFDeltaObject {
			_, first := binary.Uvarint(sizes.bytes)
			if first <= 0 {
				return broken(errors.New("a difference has no size"))
			}
			made, second := binary.Uvarint(sizes.bytes[first:])
			if second <= 0 || made > uint64(limits.Unpacked) {
				return tooLarge("a difference makes more than Limits.Unpacked")
			}
			size += int64(made)
		}
		if all += size; size < 0 || all > limits.Unpacked {
			return tooLarge(fmt.Sprintf("its commit has more than %d bytes unpacked (Limits.Unpacked)", limits.Unpacked))
		}
	}
	return nil
}

// beginning keeps the first bytes of what is written, which are two sizes.
type beginning struct{ bytes []byte }

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	if missing := 2*binary.MaxVarintLen64 - len(b.bytes); missing > 0 {
		b.bytes = append(b.bytes, p[:min(len(p), missing)]...)
	}
	return len(p), nil
}

// commitOf returns the commit that an object is, or that a tag leads to.
func commitOf(objects storer.EncodedObjectStorer, hash plumbing.Hash) (*object.Commit, error) {
	for range 8 {
		tag, err := object.GetTag(objects, hash)
		if err != nil {
			return object.GetCommit(objects, hash)
		}
		hash = tag.Target
	}
	return nil, errors.New("tags of tags lead nowhere")
}
