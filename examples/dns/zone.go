package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// record is an address record.
type record struct {
	Host    string `json:"host"`
	Address string `json:"address"`
}

// zone is a client of the zone, whose records are at /records/{host}.
type zone struct {
	url  string
	http *http.Client
}

func (z zone) get(ctx context.Context, host string) (r record, found bool, err error) {
	found, err = z.call(ctx, http.MethodGet, host, nil, &r)
	return r, found, err
}

func (z zone) put(ctx context.Context, r record) error {
	found, err := z.call(ctx, http.MethodPut, r.Host, r, nil)
	if err == nil && !found {
		err = fmt.Errorf("zone: there is no place for %s", r.Host)
	}
	return err
}

// delete is no error for what is gone.
func (z zone) delete(ctx context.Context, host string) error {
	_, err := z.call(ctx, http.MethodDelete, host, nil, nil)
	return err
}

// call sends a request and decodes the answer into answer, unless that is nil. It is false when there is no such thing.
func (z zone) call(ctx context.Context, method, host string, body, answer any) (found bool, err error) {
	content, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, method, z.url+"/records/"+url.PathEscape(host), bytes.NewReader(content))
	if err != nil {
		return false, err
	}
	response, err := z.http.Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return false, nil
	case response.StatusCode >= http.StatusMultipleChoices:
		return false, fmt.Errorf("zone: %s %s: %s", method, host, response.Status)
	case answer == nil:
		return true, nil
	}
	return true, json.NewDecoder(response.Body).Decode(answer)
}
