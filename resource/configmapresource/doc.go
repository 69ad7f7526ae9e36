// Package configmapresource is a ready-made resource: the config maps of a primary object.
//
//	pages, err := configmapresource.New(configmapresource.Config[*v1alpha1.Website]{
//		Name:   "pages",
//		Client: c,
//		Logger: logger,
//		Desired: func(ctx context.Context, site *v1alpha1.Website) ([]*corev1.ConfigMap, error) {
//			return []*corev1.ConfigMap{{
//				ObjectMeta: metav1.ObjectMeta{Name: site.Name},
//				Data:       map[string]string{"index.html": site.Spec.Text},
//			}}, nil
//		},
//	})
//
// Config maps are created, put right by server-side apply, and deleted when they are no longer desired or when the primary
// is deleted. All promises of package objectresource hold: keys that others added are left alone, keys that are
// no longer desired are removed, config maps of others are never touched.
package configmapresource
