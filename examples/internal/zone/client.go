// Package zone is an external system for examples: a zone of a name server, whose API knows hosts and addresses, and nothing of owners. There
// is a client of it, and a server that keeps its records in memory.
package zone

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Record is an address record.
type Record struct {
	Host    string `json:"host"`
	Address string `json:"address"`
}

// Client is a client of a zone, whose records are at /records/{host} of URL. Neither field is changed. It is safe for concurrent use.
type Client struct {
	URL  string
	HTTP *http.Client
}

// Get returns the record of a host, or false if it has none.
func (c *Client) Get(ctx context.Context, host string) (r Record, found bool, err error) {
	found, err = c.call(ctx, http.MethodGet, host, nil, &r)
	return r, found, err
}

// Put writes the record of a host, whether it has one or not.
func (c *Client) Put(ctx context.Context, r Record) error {
	found, err := c.call(ctx, http.MethodPut, r.Host, r, nil)
	if err == nil && !found {
		err = fmt.Errorf("zone: there is no place for %s", r.Host)
	}
	return err
}

// Delete deletes the record of a host. It is no error for what is gone.
func (c *Client) Delete(ctx context.Context, host string) error {
	_, err := c.call(ctx, http.MethodDelete, host, nil, nil)
	return err
}

// call sends a request and decodes the answer into answer, unless that is nil. It is false when there is no such thing.
func (c *Client) call(ctx context.Context, method, host string, body, answer any) (found bool, err error) {
	content, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+"/records/"+url.PathEscape(host), bytes.NewReader(content))
	if err != nil {
		return false, err
	}
	response, err := c.HTTP.Do(request)
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
