package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
)

// Waiting is how many callers wait for calls that are under way.
func (f *Fetcher) Waiting() int {
	f.calls.mu.Lock()
	defer f.calls.mu.Unlock()
	n := 0
	for _, c := range f.calls.calls {
		n += c.waiting
	}
	return n
}

// Unpack returns the names and the contents of an archive's files, and how many bytes and files of the limits are left.
func Unpack(data []byte, config Config) (map[string][]byte, int64, int, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, 0, 0, err
	}
	u := config.Limits.unpacking()
	files, err := u.read(bytes.NewReader(data))
	contents := map[string][]byte{}
	for _, f := range files {
		contents[f.name] = f.data
	}
	return contents, u.bytes, u.files, err
}

// UnpackChart unpacks the archive of a chart.
func UnpackChart(data []byte, config Config) (*artifact.Chart, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return unpackChart(data, config.Limits)
}

// Find looks a chart up in an index.yaml, and returns its address.
func Find(raw []byte, from v1alpha1.HelmChart, config Config) (string, error) {
	config, err := config.withDefaults()
	if err != nil {
		return "", err
	}
	short, err := shorten(raw, config.Limits)
	if err != nil {
		return "", err
	}
	var i index
	if err := json.Unmarshal(short, &i); err != nil {
		return "", err
	}
	entry, err := i.find(from)
	if err != nil {
		return "", err
	}
	u, err := chartAddress(from, entry)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// Share runs a call that others can share.
func Share(ctx context.Context, call func(context.Context) (int, error)) (int, error) {
	return (&flights[int]{}).do(ctx, "key", time.Minute, call)
}
